//! The steps that nothing comes between: scripts, and how they are sent.
//!
//! `v`, `l` and `g` are the names of a key's value, lease and epoch. Numbers are passed on as the text that they came as, as Lua
//! would round them. What is pushed is pushed last and by `pcall`: it is a hint, so a user who may not publish loses no more
//! than that.

use redis::{Pipeline, ServerError};
use std::sync::LazyLock;

/// Each script begins with this: what is not a string is not ours, and is left alone.
macro_rules! script {
    ($($lua:literal)*) => {
        concat!(
            "for i = 1, #KEYS do ",
            "local type = redis.call('TYPE', KEYS[i])['ok'] ",
            "if type ~= 'string' and type ~= 'none' then ",
            "return redis.error_reply('WRONGTYPE there is a ' .. type .. ' under the name of a string') end end\n",
            $($lua, "\n",)*
        )
    };
}

/// Stores `ARGV[value]` under `v`; `ARGV[keep]` are the milliseconds, `0` for not at all, empty for ever.
macro_rules! store {
    ($value:literal, $keep:literal) => {
        concat!(
            "if ARGV[", $keep, "] == '0' then redis.call('DEL', v) ",
            "elseif ARGV[", $keep, "] == '' then redis.call('SET', v, ARGV[", $value, "]) ",
            "else redis.call('SET', v, ARGV[", $value, "], 'PX', ARGV[", $keep, "]) end",
        )
    };
}

/// Pushes a message, if there is a channel.
macro_rules! push {
    ($channel:literal, $message:literal) => {
        concat!("if ARGV[", $channel, "] ~= '' then redis.pcall('PUBLISH', ARGV[", $channel, "], ARGV[", $message, "]) end")
    };
}

/// A script, and the hash that the server knows it by.
#[derive(Debug)]
pub(crate) struct Script {
    lua: &'static str,
    hash: LazyLock<String>,
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $lua:expr;)*) => { $(
        $(#[$doc])*
        pub(crate) static $name: Script = {
            const LUA: &str = $lua;
            Script { lua: LUA, hash: LazyLock::new(|| redis::Script::new(LUA).get_hash().to_owned()) }
        };
    )* };
}

scripts! {
    /// `v l g`; the token, the milliseconds of the lease and of the epoch, an epoch, the four bytes of the version that was seen:
    /// empty for none, `*` to take the lease whatever is there. Only the four bytes of a value are looked at unless it is
    /// returned.
    ACQUIRE = script! {
        "local v, l, g, token, seen = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[5]"
        "if seen ~= '*' then"
        "  if redis.call('EXISTS', v) == 1 then"
        "    local version = redis.call('GETRANGE', v, 8, 11)"
        "    if version .. string.rep('\\0', 4 - #version) ~= seen then"
        "      return {'filled', redis.call('GET', v), redis.call('PTTL', v)}"
        "    end"
        "  elseif seen ~= '' then return {'gone'} end"
        "end"
        "local holder = redis.call('GET', l)"
        "if holder and holder ~= token then return {'held', redis.call('PTTL', l), holder} end"
        "redis.call('SET', l, token, 'PX', ARGV[2])"
        "local epoch = redis.call('GET', g)"
        // One of another length is not ours, and could never be published in.
        "if not epoch or #epoch ~= #ARGV[4] then"
        "  epoch = ARGV[4]"
        "  redis.call('SET', g, epoch, 'PX', ARGV[3])"
        "elseif redis.call('PTTL', g) < tonumber(ARGV[3]) then redis.call('PEXPIRE', g, ARGV[3]) end"
        "return {'leader', epoch}"
    };

    /// `v l g`; the token, the epoch, the value, its milliseconds, the channel, the message. The value comes before the lease:
    /// if the server is out of memory, nothing is done.
    PUBLISH = script! {
        "local v, l, g = KEYS[1], KEYS[2], KEYS[3]"
        "local epoch = redis.call('GET', g)"
        "if epoch ~= ARGV[2] then"
        "  if not epoch and redis.call('EXISTS', v) == 1 then return 'superseded' end"
        "  return 'invalidated'"
        "end"
        "local mine = redis.call('GET', l) == ARGV[1]"
        "if not mine and redis.call('EXISTS', v) == 1 then return 'superseded' end"
        store!(3, 4)
        "if mine then redis.call('DEL', l, g) end"
        push!(5, 6)
        "return mine and 'stored' or 'late'"
    };

    /// `l`; the token, milliseconds.
    RENEW = script! {
        "local l = KEYS[1]"
        "if redis.call('GET', l) ~= ARGV[1] then return 0 end"
        "return redis.call('PEXPIRE', l, ARGV[2])"
    };

    /// `l`; the token, the channel, the message.
    RELEASE = script! {
        "local l = KEYS[1]"
        "if redis.call('GET', l) ~= ARGV[1] then return 0 end"
        "redis.call('DEL', l)"
        push!(2, 3)
        "return 1"
    };

    /// `v l g`; the value, its milliseconds, the channel, the message.
    PUT = script! {
        "local v, l, g = KEYS[1], KEYS[2], KEYS[3]"
        store!(1, 2)
        "redis.call('DEL', l, g)"
        push!(3, 4)
        "return 1"
    };

    /// `v l g`; the channel, the message.
    INVALIDATE = script! {
        "redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])"
        push!(1, 2)
        "return 1"
    };

    /// The name of the generation; the new one.
    CLEAR = script! {
        "redis.call('SET', KEYS[1], ARGV[1])"
        "return 1"
    };
}

impl Script {
    /// By its hash, which is all that a server needs that has seen it.
    pub(crate) fn by_hash(&self, commands: &mut Pipeline, keys: &[&[u8]], arguments: &[&[u8]]) {
        invoke(commands, "EVALSHA", &self.hash, keys, arguments);
    }

    /// In full, for one that has not.
    pub(crate) fn in_full(&self, commands: &mut Pipeline, keys: &[&[u8]], arguments: &[&[u8]]) {
        invoke(commands, "EVAL", self.lua, keys, arguments);
    }
}

fn invoke(commands: &mut Pipeline, command: &str, script: &str, keys: &[&[u8]], arguments: &[&[u8]]) {
    commands.cmd(command).arg(script).arg(keys.len());
    for part in keys.iter().chain(arguments) {
        commands.arg(*part);
    }
}

/// Whether the server has not seen the script yet, or forgot it, and so did nothing.
pub(crate) fn is_unknown(error: &ServerError) -> bool {
    error.code() == "NOSCRIPT"
}
