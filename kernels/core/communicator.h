// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The ranks of a run as one of them sees it. Collectives (kernels/ops/comm) are ops that name a communicator and know
// nothing of what bytes travel through: memory that threads share, links between devices, or a plan that only counts.
//
// All ranks run the same collectives in the same order. A communicator belongs to its rank's thread, but for abort().

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

#include "base/error.h"

namespace vitrine::kernels {

/// Bytes that a rank sends to one rank.
struct SentBytes {
    const std::byte* data = nullptr;
    std::uint64_t bytes = 0;
};

/// Where a rank wants what another one sends it.
struct ReceivedBytes {
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
};

/// Another rank has ended the run. Its own error says why; this one only unwinds the rank that threw it.
class RankAborted final : public base::Error {
public:
    explicit RankAborted(std::string message) : Error(base::ErrorKind::Internal, std::move(message)) {}
};

/// Neighbouring elements, experts or rows of a whole that one rank has.
struct RankShare {
    std::int64_t begin = 0, end = 0;

    std::int64_t count() const { return end - begin; }
};

/// The share of `rank` when `size` ranks divide `total` as evenly as it goes: the first ones have one more.
constexpr RankShare rankShare(std::int64_t total, int rank, int size) {
    const std::int64_t least = total / size, more = total % size;
    const std::int64_t begin = least * rank + (rank < more ? rank : more);
    return {begin, begin + least + (rank < more ? 1 : 0)};
}

class Communicator {
public:
    Communicator(int rank, int size) : rank_(rank), size_(size) {}
    virtual ~Communicator() = default;
    Communicator(const Communicator&) = delete; // ops and contexts hold its address
    Communicator& operator=(const Communicator&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }

    /// Sends sends[r] to rank r and receives in receives[r] what rank r sends this one; both have an entry for each
    /// rank. Returns when everything is in place and no rank reads `sends` any more. `op` is the collective, for
    /// errors. Throws RankAborted when another rank has failed, and Internal when ranks run different collectives or
    /// sizes.
    virtual void exchange(std::string_view op, std::span<const SentBytes> sends,
                          std::span<const ReceivedBytes> receives) = 0;

    /// Sends bytes to another rank, which receives as many; returns when it has them. Throws as exchange().
    virtual void send(std::string_view op, int to, const SentBytes& bytes) = 0;
    virtual void receive(std::string_view op, int from, const ReceivedBytes& bytes) = 0;

    /// This rank takes part in nothing any more: every rank that waits for it, now or later, throws RankAborted. Any
    /// thread may call it.
    virtual void abort() noexcept = 0;

    /// Undoes abort(), for the next work of the same ranks. REQUIRES that no rank is in exchange().
    virtual void recover() noexcept = 0;

private:
    int rank_;
    int size_;
};

} // namespace vitrine::kernels
