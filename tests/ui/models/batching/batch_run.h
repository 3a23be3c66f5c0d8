// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Batches for tests of views: a small schedule of requests, static or continuous, recorded as the engine reports its
// own.

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "profiler/timeline/run_timeline_builder.h"
#include "tests/ui/models/session/recorded_run.h"

namespace vitrine::test {

struct BatchTrace {
    struct Request {
        double arrival = 0;
        int prompt = 1, output = 1;
    };
    std::vector<Request> requests;

    static BatchTrace uniform(int count, int least, int most, double gap, unsigned seed) {
        std::mt19937 random(seed);
        std::uniform_int_distribution<int> tokens(least, most);
        BatchTrace trace;
        for (int i = 0; i < count; ++i) {
            trace.requests.push_back({i * gap, tokens(random), tokens(random)});
        }
        return trace;
    }
};

/// Each step takes `step` seconds and `each` more for each row; a prompt is read in one step.
class BatchRun {
public:
    BatchRun(const BatchTrace& trace, int slotCount, bool waits, double start = 0.5)
        : trace_(trace), slots_(static_cast<std::size_t>(slotCount)), waits_(waits), start_(start), now_(start) {
        for (std::size_t i = 0; i < trace.requests.size(); ++i) {
            left_.push_back(trace.requests[i].output);
            border(static_cast<int>(i), base::RequestChange::Arrived, start + trace.requests[i].arrival, -1, -1,
                   trace.requests[i].prompt);
        }
        run();
    }

    /// The run as if it had been stopped there: what later steps reported is left out.
    std::shared_ptr<const profiler::RunTimeline> timeline() { return run_.timeline(); }
    int steps() const { return step_; }
    std::int64_t generated() const { return generated_; }
    double end() const { return now_ - start_; }

private:
    struct Slot {
        int request = -1;
        bool done = false;
        bool reads = false;
        base::SlotSpanEvent open;
    };

    void border(int request, base::RequestChange phase, double time, int slot, int step, std::int64_t tokens,
                const std::string& reason = {}) {
        base::RequestEvent event{ns(time), request, phase, slot, step, tokens, {}};
        if (!reason.empty()) {
            event.reason = run_.word(reason);
        }
        run_.record(event);
    }

    int arrived() const {
        return static_cast<int>(std::count_if(trace_.requests.begin(), trace_.requests.end(),
                                              [this](const auto& r) { return start_ + r.arrival <= now_ + 1e-12; }));
    }

    void admit() {
        const bool all = std::ranges::all_of(slots_, [](const Slot& s) { return s.request < 0; });
        const int waiting = arrived() - next_;
        const int rest = static_cast<int>(trace_.requests.size()) - next_;
        if (waits_ && (!all || waiting < std::min<int>(static_cast<int>(slots_.size()), rest))) {
            return;
        }
        for (std::size_t i = 0; i < slots_.size() && next_ < arrived(); ++i) {
            if (slots_[i].request < 0) {
                slots_[i].request = next_++;
                slots_[i].reads = true;
                slots_[i].done = false;
                border(slots_[i].request, base::RequestChange::Admitted, now_, static_cast<int>(i), step_, 0);
            }
        }
    }

    void cell(std::size_t i, base::SlotState state, int request, double begin, double end, std::int64_t tokens,
              std::int64_t padding) {
        base::SlotSpanEvent& open = slots_[i].open;
        if (open.steps > 0 && (open.state != state || open.request != request)) {
            run_.record(open);
            open.steps = 0;
        }
        if (open.steps == 0) {
            open = {ns(begin), ns(end), step_, 0, static_cast<int>(i), request, state, 0, 0};
        }
        ++open.steps;
        open.end = ns(end);
        open.tokens += tokens;
        open.padding += padding;
    }

    void run() {
        while (next_ < static_cast<int>(trace_.requests.size()) ||
               std::ranges::any_of(slots_, [](const Slot& s) { return s.request >= 0; })) {
            admit();
            if (std::ranges::none_of(slots_, [](const Slot& s) { return s.request >= 0; })) {
                now_ += 0.001; // nothing to do before the next arrival
                continue;
            }
            makeStep();
        }
        for (Slot& slot : slots_) {
            if (slot.open.steps > 0) {
                run_.record(slot.open);
            }
        }
    }

    void makeStep() {
        base::BatchStepEvent step;
        step.begin = ns(now_);
        step.index = step_;
        std::int64_t longest = 0;
        for (const Slot& slot : slots_) {
            longest = slot.request >= 0 && slot.reads ? std::max<std::int64_t>(longest, prompt(slot.request)) : longest;
        }
        for (const Slot& slot : slots_) {
            if (slot.request >= 0) {
                ++step.running;
                slot.done ? ++step.paddingRows : slot.reads ? ++step.prefillRows : ++step.decodeRows;
                step.prefillTokens += slot.reads ? prompt(slot.request) : 0;
                step.paddingTokens += slot.done ? 1 : slot.reads && waits_ ? longest - prompt(slot.request) : 0;
                step.usedPages +=
                    1 +
                    (prompt(slot.request) + trace_.requests[at(slot.request)].output - left_[at(slot.request)]) / 16;
                step.sampled += slot.done ? 0 : 1;
            }
        }
        step.queued = arrived() - next_;
        step.freePages = 4096 - step.usedPages;
        const double end = now_ + 0.002 + 0.0001 * step.running + 0.00001 * static_cast<double>(step.prefillTokens);
        step.end = ns(end);
        run_.record(step);
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            finishCell(i, longest, end);
        }
        const bool over = std::ranges::all_of(slots_, [](const Slot& s) { return s.request < 0 || s.done; });
        for (Slot& slot : slots_) {
            if (slot.done && (!waits_ || over)) {
                slot.request = -1;
                slot.done = false;
            }
        }
        now_ = end;
        ++step_;
    }

    void finishCell(std::size_t i, std::int64_t longest, double end) {
        Slot& slot = slots_[i];
        const int request = slot.request;
        if (request < 0) {
            cell(i, base::SlotState::Idle, -1, now_, end, 0, 0);
            return;
        }
        if (slot.done) {
            cell(i, base::SlotState::Padding, request, now_, end, 0, 1);
            return;
        }
        cell(i, slot.reads ? base::SlotState::Prefill : base::SlotState::Decode, request, now_, end,
             slot.reads ? prompt(request) : 1, slot.reads && waits_ ? longest - prompt(request) : 0);
        const int made = trace_.requests[at(request)].output - left_[at(request)] + 1;
        run_.record(base::TokenEvent{ns(end), request, prompt(request) + made - 1, request * 1000 + made, 0});
        ++generated_;
        if (slot.reads) {
            border(request, base::RequestChange::FirstToken, end, static_cast<int>(i), step_, 1);
        }
        slot.reads = false;
        if (--left_[at(request)] == 0) {
            border(request, base::RequestChange::Finished, end, static_cast<int>(i), step_, made, "length");
            slot.done = true;
        }
    }

    static std::size_t at(int request) { return static_cast<std::size_t>(request); }
    int prompt(int request) const { return trace_.requests[at(request)].prompt; }

    BatchTrace trace_;
    std::vector<Slot> slots_;
    bool waits_;
    double start_, now_;
    std::vector<int> left_;
    int next_ = 0, step_ = 0;
    std::int64_t generated_ = 0;
    RecordedRun run_;
};

inline sessions::RunInfo batchInfo(sessions::RunId id, const std::string& mode, int slotCount, double rate = 1000,
                                   const std::string& more = {}) {
    const std::string seconds = std::to_string(0.001 * slotCount);
    const std::string shares = R"({"p50": )" + seconds + R"(, "p90": )" + seconds + R"(, "p99": )" + seconds + "}";
    return runInfo(id, "batch",
                   R"({"mode": ")" + mode + R"(", "slots": )" + std::to_string(slotCount) +
                       R"(, "tokens_per_second": )" + std::to_string(rate) + R"(, "tpot": )" + shares +
                       R"(, "ttft": )" + shares + "}",
                   R"({"vitrine": 1, "workload": "batch", "model": "m", "trace": "uniform", "requests": 64, "seed": 11,
                       "mode": ")" +
                       mode + R"(", "slots": )" + std::to_string(slotCount) + more + "}");
}

} // namespace vitrine::test
