//! The steps that nothing comes between: scripts, and how they are sent.
//!
//! `v`, `l` and `g` are the names of a key's value, lease and epoch. Numbers are handed on as the text that they came as, since
//! Lua would round them.

use super::name::Name;
use redis::{Pipeline, ServerError};
use std::sync::LazyLock;

/// Each script begins with this.
///
/// - What is not a string is not ours: nothing is changed then.
/// - `store`: `keep` are milliseconds, `0` for not at all, empty for ever.
/// - `push`: nowhere if the channel is empty. It is a hint, so a user who may not publish loses no more than that.
macro_rules! script {
    ($lua:literal) => {
        concat!(
            r"for _, name in ipairs(KEYS) do
  local type = redis.call('TYPE', name)['ok']
  if type ~= 'string' and type ~= 'none' then return redis.error_reply('WRONGTYPE not a string but a ' .. type) end
end
local function store(name, value, keep)
  if keep == '0' then redis.call('DEL', name)
  elseif keep == '' then redis.call('SET', name, value)
  else redis.call('SET', name, value, 'PX', keep) end
end
local function push(channel, message)
  if channel ~= '' then redis.pcall('PUBLISH', channel, message) end
end
",
            $lua
        )
    };
}

/// A script, and the hash that the server knows it by.
#[derive(Debug)]
pub(crate) struct Script {
    keys: Keys,
    lua: &'static str,
    hash: LazyLock<String>,
}

/// Which of a key's names a script is given. It must touch no other.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// `v`, `l` and `g`.
    All,
    /// `l`.
    Lease,
    /// `l` and `g`.
    LeaseAndEpoch,
    /// None: it is no script of a key's.
    None,
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident($keys:ident) = $lua:literal;)*) => { $(
        $(#[$doc])*
        pub(crate) static $name: Script = {
            const LUA: &str = script!($lua);
            Script { keys: Keys::$keys, lua: LUA, hash: LazyLock::new(|| redis::Script::new(LUA).get_hash().to_owned()) }
        };
    )* };
}

scripts! {
    /// The token, the milliseconds of the lease and of the epoch, an epoch, the four bytes of the version that was seen: empty
    /// for none, `*` to take the lease whatever is there.
    ///
    /// Only the four bytes of a value are looked at unless it is returned. An epoch that is not written as ours are is not ours,
    /// and nobody could publish in it. A lease that does not end is not ours either, and nobody would give it up.
    ACQUIRE(All) = r"
local v, l, g = KEYS[1], KEYS[2], KEYS[3]
local token, lease, life, epoch, seen = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if seen ~= '*' then
  if redis.call('EXISTS', v) == 1 then
    local version = redis.call('GETRANGE', v, 8, 11)
    if version .. string.rep('\0', 4 - #version) ~= seen then
      return {'filled', redis.call('PTTL', v), redis.call('GET', v)}
    end
  elseif seen ~= '' then
    return {'gone'}
  end
end
local holder = redis.call('GET', l)
if holder and holder ~= token then
  local left = redis.call('PTTL', l)
  if left ~= -1 then return {'held', left, holder} end
end
redis.call('SET', l, token, 'PX', lease)
local there = redis.call('GET', g)
if not there or #there ~= #epoch or there:find('[^0-9a-f]') then
  redis.call('SET', g, epoch, 'PX', life)
  return {'leader', epoch}
end
if redis.call('PTTL', g) < tonumber(life) then redis.call('PEXPIRE', g, life) end
return {'leader', there}
";

    /// The token, the epoch, the value, its milliseconds, the channel, the message.
    ///
    /// The value comes before the lease: if the server is out of memory, nothing has been done. Without a holder, what is not to be
    /// kept is as a write, so that what was loaded before does not come after it.
    PUBLISH(All) = r"
local v, l, g = KEYS[1], KEYS[2], KEYS[3]
local token, epoch, value, keep, channel, message = unpack(ARGV)
local there = redis.call('GET', g)
if there ~= epoch then
  if not there and redis.call('EXISTS', v) == 1 then return 'superseded' end
  return 'invalidated'
end
local holder = redis.call('GET', l)
if holder == token or (keep == '0' and not holder) then
  store(v, value, keep)
  redis.call('DEL', l, g)
  push(channel, message)
  return 'stored'
end
if redis.call('EXISTS', v) == 1 then return 'superseded' end
store(v, value, keep)
push(channel, message)
return 'late'
";

    /// The token, the milliseconds of the lease, and of the epoch: empty to leave that alone.
    RENEW(LeaseAndEpoch) = r"
local l, g = KEYS[1], KEYS[2]
local token, lease, life = ARGV[1], ARGV[2], ARGV[3]
if redis.call('GET', l) ~= token then return 0 end
if life ~= '' and redis.call('PTTL', g) < tonumber(life) then redis.call('PEXPIRE', g, life) end
return redis.call('PEXPIRE', l, lease)
";

    /// The token, the channel, the message.
    RELEASE(Lease) = r"
local l = KEYS[1]
if redis.call('GET', l) ~= ARGV[1] then return 0 end
redis.call('DEL', l)
push(ARGV[2], ARGV[3])
return 1
";

    /// The value, its milliseconds, the channel, the message.
    PUT(All) = r"
store(KEYS[1], ARGV[1], ARGV[2])
redis.call('DEL', KEYS[2], KEYS[3])
push(ARGV[3], ARGV[4])
return 1
";

    /// The channel, the message.
    INVALIDATE(All) = r"
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
push(ARGV[1], ARGV[2])
return 1
";

    /// What the generation is called; the new one. If there is no room for it, there is none, which is as good: the next one that
    /// is made has never been either.
    CLEAR(None) = r"
local done = redis.pcall('SET', KEYS[1], ARGV[1])
if done['err'] then redis.call('DEL', KEYS[1]) end
return 1
";
}

impl Script {
    /// Those of the key's names that it is given.
    pub(crate) fn keys(&self, name: &Name) -> Vec<Vec<u8>> {
        match self.keys {
            Keys::All => vec![name.value().to_vec(), name.lease(), name.epoch()],
            Keys::Lease => vec![name.lease()],
            Keys::LeaseAndEpoch => vec![name.lease(), name.epoch()],
            Keys::None => Vec::new(),
        }
    }

    /// By its hash, which is all that a server needs that has seen it.
    pub(crate) fn by_hash(&self, commands: &mut Pipeline, keys: &[Vec<u8>], arguments: &[&[u8]]) {
        invoke(commands, "EVALSHA", &self.hash, keys, arguments);
    }

    /// In full, for one that has not.
    pub(crate) fn in_full(&self, commands: &mut Pipeline, keys: &[Vec<u8>], arguments: &[&[u8]]) {
        invoke(commands, "EVAL", self.lua, keys, arguments);
    }
}

fn invoke(commands: &mut Pipeline, command: &str, script: &str, keys: &[Vec<u8>], arguments: &[&[u8]]) {
    commands.cmd(command).arg(script).arg(keys.len());
    for part in keys.iter().map(Vec::as_slice).chain(arguments.iter().copied()) {
        commands.arg(part);
    }
}

/// Whether the server has not seen the script yet, or forgot it, and so did nothing.
pub(crate) fn is_unknown(error: &ServerError) -> bool {
    error.code() == "NOSCRIPT"
}
