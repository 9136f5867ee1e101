/*
 * lltt.h of bhemu: the replay buffer, under the names that LLK headers use for it.
 *
 * It stands in for the header of that name that comes with the vendor's compiler, and needs no compiler support: a
 * REPLAY word is put into the instruction stream when it is a constant, and stored to the push window otherwise.
 */

#pragma once

#include <cstdint>

namespace lltt
{

/* Whether the words that are recorded are executed as well. */
enum ExecBool : bool
{
    NoExec = false,
    Exec   = true,
};

/* REPLAY: start_idx [23:14], len [13:4], execute_while_loading [1], load_mode [0] */
[[gnu::always_inline]] constexpr std::uint32_t replay_word(std::uint32_t start, std::uint32_t length, bool execute, bool load)
{
    return 0x04000000u | (start << 14) | (length << 4) | (std::uint32_t(execute) << 1) | std::uint32_t(load);
}

[[gnu::always_inline]] inline void push(std::uint32_t word)
{
    if (__builtin_constant_p(word))
    {
        asm volatile(".ttinsn %0" ::"i"(word));
    }
    else
    {
        *reinterpret_cast<volatile std::uint32_t *>(0xFFE40000u) = word;
    }
}

/* The word that plays `length` words back, from word `start` of the thread's buffer. */
[[gnu::always_inline]] constexpr std::uint32_t replay_insn(std::uint32_t start, std::uint32_t length)
{
    return replay_word(start, length, false, false);
}

/* Plays them back. */
[[gnu::always_inline]] inline void replay(std::uint32_t start, std::uint32_t length)
{
    push(replay_insn(start, length));
}

/* Records the next `length` words into the buffer, from word `start`. */
template <ExecBool Execute = NoExec>
[[gnu::always_inline]] inline void record(std::uint32_t start, std::uint32_t length)
{
    push(replay_word(start, length, Execute, true));
}

} // namespace lltt
