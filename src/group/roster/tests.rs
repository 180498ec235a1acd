use super::*;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

fn roster() -> Roster<()> {
    Roster::new()
}

fn seat() -> Option<Seat> {
    let mut flight = crate::flight::Flight::led();
    let crate::flight::Join::Wait(seat) = flight.join(OnAbandon::TakeOver) else { panic!("somebody leads") };
    Some(seat)
}

fn waiter(roster: &mut Roster<()>) -> TaskId {
    roster.insert(OnAbandon::TakeOver, seat())
}

/// Wakers of so many tasks.
fn wakers(count: usize) -> Vec<Waker> {
    (0..count).map(|_| Waker::from(Arc::new(Nobody))).collect()
}

#[test]
fn room_for_a_crowd_is_given_back_when_all_but_one_have_left_and_some_is_kept() {
    for (crowd, kept) in [(5, 8), (20, 1)] {
        let mut roster = roster();
        let tasks: Vec<_> = (0..crowd).map(|_| waiter(&mut roster)).collect();
        for task in tasks.into_iter().skip(1) {
            assert!(roster.remove(task).is_some());
        }
        assert_eq!((roster.tasks.capacity(), roster.waiting()), (kept, 1), "of {crowd}");
    }
}

#[test]
fn the_list_goes_with_the_last_of_those_who_were_all_woken() {
    let mut roster = roster();
    let wakers = wakers(3);
    let tasks: Vec<_> = (0..3).map(|_| waiter(&mut roster)).collect();
    for (task, waker) in tasks.iter().zip(wakers) {
        assert!(roster.keep_waker(*task, waker).is_none());
    }
    assert_eq!(roster.wake_all().into_iter().flatten().count(), 3);
    roster.close();
    roster.let_go();
    assert!(roster.remove(tasks[1]).is_some(), "one leaves otherwise");
    assert!(!roster.is_empty());
    roster.let_go();
    assert!(roster.is_empty());
    assert_eq!((roster.tasks.capacity(), roster.wakers.capacity()), (0, 0));
}

/// Whatever tasks do, whoever sleeps longest is found, and one whose waker wakes another task if there is one.
#[test]
fn sleepers_are_woken_in_turn_and_one_with_another_waker_whenever_there_is_one() {
    const TASKS: usize = 5;
    let wakers = wakers(3);
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut roster = roster();
        let tasks: Vec<_> = (0..TASKS).map(|_| waiter(&mut roster)).collect();
        // Who sleeps, and with which waker, in the order in which they are woken.
        let mut asleep: VecDeque<(usize, usize)> = VecDeque::new();
        let number = |waker: Option<Waker>| waker.and_then(|waker| wakers.iter().position(|one| one.will_wake(&waker)));
        for _ in 0..60 {
            let (task, waker) = (rng.usize(..TASKS), rng.usize(..wakers.len()));
            match rng.u8(..5) {
                0..3 => {
                    drop(roster.keep_waker(tasks[task], wakers[waker].clone()));
                    match asleep.iter_mut().find(|(asleep, _)| *asleep == task) {
                        Some(place) => place.1 = waker,
                        None => asleep.push_back((task, waker)),
                    }
                }
                3 => {
                    let expected = asleep.pop_front().map(|(_, waker)| waker);
                    assert_eq!(number(roster.wake_one()), expected, "seed {seed}");
                }
                _ => {
                    let place = asleep.iter().position(|(_, other)| *other != waker);
                    let expected = place.and_then(|place| {
                        // Those who were passed over go to the back.
                        asleep.rotate_left(place);
                        asleep.pop_front()
                    });
                    let woken = number(roster.wake_another(&wakers[waker]));
                    assert_eq!(woken, expected.map(|(_, waker)| waker), "seed {seed}");
                }
            }
        }
    }
}
