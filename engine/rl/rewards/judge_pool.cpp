// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/judge_pool.h"

#include <algorithm>
#include <array>
#include <exception>
#include <fmt/format.h>
#include <limits>
#include <unistd.h>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "engine/rl/rewards/group_memory.h"
#include "engine/rl/rewards/judge_lines.h"

namespace vitrine::engine {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kScanEvery{100};      ///< while answers are judged
constexpr milliseconds kIdleScanEvery{1000}; ///< while none is
constexpr milliseconds kCloseTime{1000};     ///< from the end of a process's output to its own
constexpr milliseconds kEndLook{5};          ///< how often to look for the end of what is about to end
constexpr milliseconds kLongestPause{100};   ///< between starts of a program that always fails
constexpr std::int64_t kPauseDoublings = 5;
constexpr std::int64_t kIdleFailuresLogged = 10; ///< no attempt tells of them

/// Between starts, after so many failures in a row.
milliseconds pauseAfter(std::int64_t failures) {
    return std::min(kLongestPause, milliseconds(5) * (1 << std::min(failures - 1, kPauseDoublings)));
}

/// "30 s", "0.3 s"
std::string secondsText(milliseconds time) {
    return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

void readAll(int descriptor) {
    std::array<char, 256> bytes{};
    while (::read(descriptor, bytes.data(), bytes.size()) > 0) {
    }
}

} // namespace

JudgePool::JudgePool(RewardCommandOptions options) : options_(std::move(options)) {
    slots_.resize(static_cast<std::size_t>(options_.processes));
}

JudgePool::~JudgePool() {
    drop(); // all are killed before the first is waited for
}

void JudgePool::drop() {
    waiting_.clear();
    for (Slot& slot : slots_) {
        if (slot.process != nullptr) {
            retire(slot);
        }
    }
}

std::vector<Judgement> JudgePool::round(int wake) {
    giveWork();
    std::vector<pollfd> polled{{wake, POLLIN, 0}};
    for (Slot& slot : slots_) {
        slot.polled = polled.size();
        if (slot.process != nullptr) {
            slot.process->addTo(polled);
        }
    }
    // What came of giving work is not kept back.
    const int found = ::poll(polled.data(), polled.size(), judged_.empty() ? longestWait() : 0);
    readAll(wake);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        Slot& slot = slots_[i];
        const std::size_t end = i + 1 < slots_.size() ? slots_[i + 1].polled : polled.size();
        const bool happened = std::any_of(polled.begin() + static_cast<std::ptrdiff_t>(slot.polled),
                                          polled.begin() + static_cast<std::ptrdiff_t>(end),
                                          [](const pollfd& one) { return one.revents != 0; });
        if (slot.process != nullptr) {
            if (found > 0 && happened) {
                slot.process->work();
            }
            look(slot);
        }
    }
    watchMemory();
    std::erase_if(ending_, [](const std::unique_ptr<JudgeProcess>& process) { return process->isGone(); });
    return std::exchange(judged_, {});
}

void JudgePool::giveWork() {
    // Those that are there go first: a new one may take long to load what it judges with.
    for (const bool isStarting : {false, true}) {
        for (Slot& slot : slots_) {
            if (waiting_.empty()) {
                return;
            }
            if (slot.process != nullptr && !isStarting && !slot.attempt) {
                // What it has said since it was last looked at, nobody asked for.
                slot.process->work();
                look(slot);
                if (slot.process != nullptr && !slot.closeBy) {
                    give(slot);
                }
            } else if (slot.process == nullptr && isStarting && Clock::now() >= nextStart_ && start(slot)) {
                give(slot);
            }
        }
    }
}

bool JudgePool::start(Slot& slot) {
    if (failures_ > 0) {
        nextStart_ = Clock::now() + pauseAfter(failures_);
    }
    try {
        slot.process = std::make_unique<JudgeProcess>(options_.command, lifeLine_);
        return true;
    } catch (const std::exception& error) {
        slot.attempt = waiting_.front().id;
        waiting_.pop_front();
        fail(slot, &RewardCommandCounts::crashes, error.what());
        return false;
    }
}

void JudgePool::give(Slot& slot) {
    const Attempt attempt = std::move(waiting_.front());
    waiting_.pop_front();
    std::string line;
    try {
        line = judgeRequest(attempt);
    } catch (const std::exception& error) {
        judged({.id = attempt.id, .error = fmt::format("reward_command: {}", error.what())});
        return;
    }
    slot.attempt = attempt.id;
    slot.deadline = Clock::now() + options_.timeout;
    slot.process->send(std::move(line));
}

int JudgePool::longestWait() const {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = Clock::time_point::max();
    for (const Slot& slot : slots_) {
        if (slot.closeBy) {
            next = std::min(next, now + kEndLook);
        } else if (slot.attempt) {
            // A process may end without the end of its output, which a child of its may hold.
            next = std::min({next, slot.deadline, now + kScanEvery});
        } else if (slot.process == nullptr && !waiting_.empty()) {
            next = std::min(next, nextStart_);
        }
        if (slot.process != nullptr && options_.memoryBytes > 0) {
            next = std::min(next, nextScan_);
        }
    }
    if (!ending_.empty()) {
        next = std::min(next, now + kEndLook);
    }
    if (next == Clock::time_point::max()) {
        return -1;
    }
    const auto wait = std::chrono::ceil<milliseconds>(std::max(next - now, Clock::duration::zero()));
    return static_cast<int>(std::min<std::int64_t>(wait.count(), std::numeric_limits<int>::max()));
}

void JudgePool::look(Slot& slot) {
    const std::optional<std::string> end = slot.process->end();
    if (end) {
        slot.process->work(); // the last that it has said
    }
    hear(slot);
    if (slot.process == nullptr) {
        return;
    }
    const Clock::time_point now = Clock::now();
    if (end) {
        const std::string said = slot.process->lastError();
        fail(slot, &RewardCommandCounts::crashes,
             fmt::format("reward_command: the program {}{}{}", *end, said.empty() ? "" : ": ", said));
    } else if (slot.attempt && now >= slot.deadline) {
        fail(slot, &RewardCommandCounts::timeouts,
             fmt::format("reward_command: no answer within {}, the process was ended", secondsText(options_.timeout)));
    } else if (slot.closeBy && now >= *slot.closeBy) {
        fail(slot, &RewardCommandCounts::crashes, "reward_command: the program closed its input or output");
    } else if (slot.process->isClosed() && !slot.closeBy) {
        slot.closeBy = now + kCloseTime;
    }
}

void JudgePool::hear(Slot& slot) {
    if (!slot.attempt) {
        if (slot.process->hasOutput()) {
            fail(slot, &RewardCommandCounts::badAnswers,
                 "reward_command: the program printed something that nobody asked for");
        }
    } else if (const std::optional<std::string> line = slot.process->takeLine()) {
        takeAnswer(slot, *line);
    } else if (slot.process->isTooLong()) {
        fail(slot, &RewardCommandCounts::badAnswers,
             fmt::format("reward_command: the program printed a line of more than {}",
                         base::formatBytes(kLongestReply)));
    }
}

void JudgePool::takeAnswer(Slot& slot, const std::string& line) {
    if (!slot.process->hasSent()) {
        fail(slot, &RewardCommandCounts::badAnswers,
             "reward_command: the program answered before it had read the whole line");
        return;
    }
    Judgement judgement = readJudgeReply(line, *slot.attempt);
    if (!judgement.error.empty()) {
        fail(slot, &RewardCommandCounts::badAnswers, judgement.error);
    } else if (slot.process->hasOutput()) {
        fail(slot, &RewardCommandCounts::badAnswers,
             "reward_command: the program printed more than one line for an answer");
    } else {
        ++counts_.judged;
        failures_ = 0;
        judgement.seconds = secondsOf(slot);
        slot.attempt.reset();
        judged(std::move(judgement));
    }
}

/// Since the process got what it judges.
double JudgePool::secondsOf(const Slot& slot) const {
    return std::chrono::duration<double>(Clock::now() - (slot.deadline - options_.timeout)).count();
}

void JudgePool::watchMemory() {
    const auto isBusy = [](const Slot& slot) { return slot.attempt.has_value(); };
    const auto isThere = [](const Slot& slot) { return slot.process != nullptr; };
    const Clock::time_point begin = Clock::now();
    if (options_.memoryBytes == 0 || begin < nextScan_ || std::ranges::none_of(slots_, isThere)) {
        return;
    }
    const std::map<pid_t, std::uint64_t> bytes = residentByGroup();
    for (Slot& slot : slots_) {
        const auto group = slot.process == nullptr ? bytes.end() : bytes.find(slot.process->group());
        if (group != bytes.end() && group->second > options_.memoryBytes) {
            fail(slot, &RewardCommandCounts::overMemory,
                 fmt::format("reward_command: the process took {} of memory where {} are allowed, and was ended",
                             base::formatBytes(group->second), base::formatBytes(options_.memoryBytes)));
        }
    }
    // On a machine with very many processes looking takes a tenth of the time at most.
    const Clock::time_point now = Clock::now();
    const milliseconds every = std::ranges::any_of(slots_, isBusy) ? kScanEvery : kIdleScanEvery;
    nextScan_ = now + std::max<Clock::duration>(every, 10 * (now - begin));
}

void JudgePool::fail(Slot& slot, Count count, const std::string& reason) {
    ++(counts_.*count);
    ++failures_;
    nextStart_ = Clock::now() + pauseAfter(failures_);
    if (slot.attempt) {
        judged({.id = *slot.attempt, .error = reason, .seconds = secondsOf(slot)});
    } else if (++idleFailures_ <= kIdleFailuresLogged) {
        base::logWarning(fmt::format("{} (between answers)", reason));
    }
    retire(slot);
}

void JudgePool::retire(Slot& slot) {
    if (slot.process != nullptr) {
        slot.process->kill();
        ending_.push_back(std::move(slot.process));
    }
    slot = {};
}

} // namespace vitrine::engine
