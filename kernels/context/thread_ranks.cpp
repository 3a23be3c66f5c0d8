// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/context/thread_ranks.h"

#include <condition_variable>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <string>

namespace vitrine::kernels {

namespace {

/// What the ranks share. In a collective they meet when every rank has said what it sends. Then each reads, and none
/// leaves before all have read: not even when a rank has failed, for its bytes may go with it.
class Meeting {
public:
    explicit Meeting(int size) : size_(static_cast<std::size_t>(size)), offers_(size_), letters_(size_ * size_) {}

    struct Offer {
        std::string_view op;
        std::span<const SentBytes> sends;
    };

    /// Returns when all ranks have come; every one calls leave() then. Throws RankAborted.
    void come(std::string_view op) {
        std::unique_lock lock(mutex_);
        throwIfAborted(op);
        const std::uint64_t number = number_;
        if (++come_ == size_) {
            come_ = 0;
            reading_ = size_;
            ++number_;
            lock.unlock();
            changed_.notify_all();
            return;
        }
        changed_.wait(lock, [&] { return number_ != number || aborted_ >= 0; });
        if (number_ == number) {
            throwIfAborted(op);
        }
    }

    /// Returns when all ranks have read.
    void leave() {
        std::unique_lock lock(mutex_);
        if (--reading_ == 0) {
            lock.unlock();
            changed_.notify_all();
            return;
        }
        const std::uint64_t number = number_;
        changed_.wait(lock, [&] { return reading_ == 0 || number_ != number; });
    }

    Offer& offer(int rank) { return offers_[static_cast<std::size_t>(rank)]; }

    /// Returns when rank `to` has read the letter.
    void send(std::string_view op, int from, int to, const SentBytes& bytes) {
        std::unique_lock lock(mutex_);
        Letter& letter = letterOf(from, to);
        letter = {&bytes, false};
        changed_.notify_all();
        changed_.wait(lock, [&] { return letter.bytes == nullptr || (aborted_ >= 0 && !letter.opened); });
        if (letter.bytes != nullptr) {
            letter = {};
            throwIfAborted(op);
        }
    }

    void receive(std::string_view op, int from, int to, const ReceivedBytes& out) {
        std::unique_lock lock(mutex_);
        Letter& letter = letterOf(from, to);
        changed_.wait(lock, [&] { return letter.bytes != nullptr || aborted_ >= 0; });
        throwIfAborted(op);
        if (letter.bytes->bytes != out.bytes) {
            throw base::Internal(fmt::format("{}: rank {} waits for {} bytes, and rank {} sends {}", op, to, out.bytes,
                                             from, letter.bytes->bytes));
        }
        const SentBytes sent = *letter.bytes;
        letter.opened = true;
        lock.unlock(); // the sender waits until the letter is gone
        std::memcpy(out.data, sent.data, sent.bytes);
        lock.lock();
        letter = {};
        lock.unlock();
        changed_.notify_all();
    }

    void abort(int rank) noexcept {
        {
            const std::lock_guard lock(mutex_);
            aborted_ = aborted_ < 0 ? rank : aborted_;
        }
        changed_.notify_all();
    }

    void recover() noexcept {
        const std::lock_guard lock(mutex_);
        aborted_ = -1;
        come_ = 0;
        letters_.assign(letters_.size(), {});
    }

private:
    struct Letter {
        const SentBytes* bytes = nullptr; ///< null: none waits
        bool opened = false;              ///< it is being read
    };

    Letter& letterOf(int from, int to) {
        return letters_[static_cast<std::size_t>(from) * size_ + static_cast<std::size_t>(to)];
    }

    void throwIfAborted(std::string_view op) const {
        if (aborted_ >= 0) {
            throw RankAborted(fmt::format("{}: rank {} has ended the run", op, aborted_));
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t size_;
    std::vector<Offer> offers_;   ///< each is its rank's before they meet, and everyone's to read after that
    std::vector<Letter> letters_; ///< by sender, then receiver
    std::size_t come_ = 0;
    std::size_t reading_ = 0;
    std::uint64_t number_ = 0; ///< of meetings
    int aborted_ = -1;
};

/// Leaves a meeting however reading ends.
class Reading {
public:
    explicit Reading(Meeting& meeting) : meeting_(meeting) {}
    ~Reading() { meeting_.leave(); }
    Reading(const Reading&) = delete; // one end
    Reading& operator=(const Reading&) = delete;

private:
    Meeting& meeting_;
};

class ThreadRank final : public Communicator {
public:
    ThreadRank(int rank, int size, std::shared_ptr<Meeting> meeting)
        : Communicator(rank, size), meeting_(std::move(meeting)) {}

    void exchange(std::string_view op, std::span<const SentBytes> sends,
                  std::span<const ReceivedBytes> receives) override {
        meeting_->offer(rank()) = {op, sends};
        meeting_->come(op);
        const Reading reading(*meeting_);
        for (int from = 0; from < size(); ++from) {
            take(op, from, receives[static_cast<std::size_t>(from)]);
        }
    }

    void send(std::string_view op, int to, const SentBytes& bytes) override { meeting_->send(op, rank(), to, bytes); }
    void receive(std::string_view op, int from, const ReceivedBytes& bytes) override {
        meeting_->receive(op, from, rank(), bytes);
    }

    void abort() noexcept override { meeting_->abort(rank()); }
    void recover() noexcept override { meeting_->recover(); }

private:
    void take(std::string_view op, int from, const ReceivedBytes& to) const {
        const Meeting::Offer& offer = meeting_->offer(from);
        const SentBytes& sent = offer.sends[static_cast<std::size_t>(rank())];
        if (offer.op != op || sent.bytes != to.bytes) {
            throw base::Internal(fmt::format("rank {} is at {} for {} bytes, and rank {} at {} with {}", rank(), op,
                                             to.bytes, from, offer.op, sent.bytes));
        }
        if (to.bytes > 0 && to.data != sent.data) {
            std::memcpy(to.data, sent.data, to.bytes);
        }
    }

    std::shared_ptr<Meeting> meeting_;
};

class LoneRank final : public Communicator {
public:
    using Communicator::Communicator;
    void exchange(std::string_view /*op*/, std::span<const SentBytes> /*sends*/,
                  std::span<const ReceivedBytes> /*receives*/) override {}
    void send(std::string_view /*op*/, int /*to*/, const SentBytes& /*bytes*/) override {}
    void receive(std::string_view /*op*/, int /*from*/, const ReceivedBytes& /*bytes*/) override {}
    void abort() noexcept override {}
    void recover() noexcept override {}
};

} // namespace

std::vector<std::unique_ptr<Communicator>> makeThreadRanks(int size) {
    const auto meeting = std::make_shared<Meeting>(size);
    std::vector<std::unique_ptr<Communicator>> ranks;
    ranks.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
        ranks.push_back(std::make_unique<ThreadRank>(rank, size, meeting));
    }
    return ranks;
}

std::unique_ptr<Communicator> makeLoneRank(int rank, int size) {
    return std::make_unique<LoneRank>(rank, size);
}

} // namespace vitrine::kernels
