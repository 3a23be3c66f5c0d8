// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rollout/rollout_engine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "engine/rl/rollout/prompt_experts.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

/// Pages of a prompt from which answers wait for the first one of their group.
constexpr std::int64_t kPagesToWaitFor = 2;

} // namespace

/// One call of sample(): which requests the engine has, and which wait for the first one of their group.
class RolloutEngine::Sampling {
public:
    /// `next`: the number of the next request, which grows with each.
    Sampling(BatchEngine& engine, std::vector<GenerateRequest> requests, base::TimeNs arrival, std::int32_t& next)
        : engine_(engine), requests_(std::move(requests)), arrival_(arrival), next_(next) {
        const BatchOptions& options = engine.options();
        const std::int64_t page = engine.cache().groups().front().pageTokens;
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            const bool sameAsBefore = i > 0 && requests_[i].prompt == requests_[first_].prompt;
            first_ = sameAsBefore ? first_ : i;
            prompts_.note(requests_[i], first_, options.cache.sharePrefixes);
            const bool waits = sameAsBefore && options.cache.sharePrefixes &&
                               static_cast<std::int64_t>(requests_[i].prompt.size()) >= kPagesToWaitFor * page;
            if (waits) {
                followers_[first_].push_back(i);
            } else {
                order_.push_back(i);
            }
        }
    }

    /// Those that wait for nothing.
    void addFirst() {
        for (const std::size_t index : order_) {
            add(index);
        }
    }
    /// The prompt of a request is in its pages.
    void promptRead(std::int32_t number) {
        prompts_.read(indexOf(number), engine_.result(number).result);
        const auto found = followers_.find(indexOf(number));
        if (found == followers_.end()) {
            return;
        }
        ready_.insert(ready_.end(), found->second.begin(), found->second.end());
        followers_.erase(found);
    }
    void addReady() {
        for (const std::size_t index : std::exchange(ready_, {})) {
            add(index);
        }
    }
    /// A request has ended.
    void complete(std::int32_t number, GenerateResult& result) { prompts_.complete(indexOf(number), result); }
    std::size_t indexOf(std::int32_t number) const { return places_.at(static_cast<std::size_t>(number - begin_)); }
    bool allAdded() const { return places_.size() == requests_.size(); }

private:
    void add(std::size_t index) {
        GenerateRequest request = requests_[index];
        if (followers_.find(index) == followers_.end()) {
            request = std::move(requests_[index]);
        }
        const std::int32_t number = engine_.add(std::move(request), arrival_);
        next_ = number + 1;
        begin_ = places_.empty() ? number : begin_;
        places_.push_back(index);
        if (const std::string& refusal = engine_.result(number).refusal; !refusal.empty()) {
            throw base::BadInput("max_new_tokens: an answer cannot be sampled: " + refusal);
        }
    }

    BatchEngine& engine_;
    std::vector<GenerateRequest> requests_;
    base::TimeNs arrival_;
    std::int32_t& next_;
    std::size_t first_ = 0;
    PromptExperts prompts_;
    std::vector<std::size_t> order_;
    std::map<std::size_t, std::vector<std::size_t>> followers_; ///< by the first request of their group
    std::vector<std::size_t> ready_;
    std::int32_t begin_ = 0;          ///< the engine's number of the first one: others were answered before
    std::vector<std::size_t> places_; ///< by the engine's number from begin_ on: the place of the request
};

RolloutEngine::RolloutEngine(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const BatchOptions& options)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(options) {}

RolloutEngine::~RolloutEngine() {
    sleep();
}

void RolloutEngine::wake() {
    if (engine_ != nullptr) {
        return;
    }
    if (drafterSleeps_) {
        drafterSleeps_ = false;
        options_.speculation.drafter->wake();
    }
    engine_ = std::make_unique<BatchEngine>(model_, tokenizer_, options_);
    engine_->prepare();
}

/// The sizes of an engine are those of the requests that wake it. Longer ones later need another engine.
void RolloutEngine::expect(const std::vector<GenerateRequest>& requests) {
    std::int64_t prompt = 1, sequence = 1;
    bool experts = false;
    for (const GenerateRequest& request : requests) {
        const auto tokens = static_cast<std::int64_t>(request.prompt.size());
        prompt = std::max(prompt, tokens);
        sequence = std::max(sequence, tokens + request.maxNewTokens - 1);
        experts = experts || request.returnsExperts;
    }
    if (engine_ != nullptr && prompt <= options_.longestPrompt && sequence <= options_.longestSequence &&
        (options_.experts || !experts)) {
        return;
    }
    sleep();
    options_.longestPrompt = prompt;
    options_.longestSequence = sequence;
    options_.experts = experts;
}

void RolloutEngine::sleep() {
    if (engine_ == nullptr) {
        return;
    }
    countEngine();
    engine_.reset();
    giveBack();
}

void RolloutEngine::giveBack() {
    if (options_.speculation.on() && !drafterSleeps_) {
        options_.speculation.drafter->sleep();
        drafterSleeps_ = true;
    }
    model_.giveBackSteps();
    model_.context().memory().trim();
}

void RolloutEngine::weightsChanged() {
    sleep();
    ++version_;
}

void RolloutEngine::sample(std::vector<GenerateRequest> requests, const Ended& ended) {
    const base::TimeNs begin = model_.context().clock().now();
    expect(requests);
    wake();
    try {
        answer(std::move(requests), ended);
    } catch (...) {
        engine_.reset(); // it serves no more
        giveBack();
        throw;
    }
    counts_.seconds += static_cast<double>(model_.context().clock().now() - begin) * 1e-9;
}

void RolloutEngine::answer(std::vector<GenerateRequest> requests, const Ended& ended) {
    Sampling sampling(*engine_, std::move(requests), model_.context().clock().now(), options_.scheduler.firstRequest);
    std::vector<std::int32_t> done;
    engine_->onToken([&](const GeneratedToken& token) {
        if (token.index == 0) {
            sampling.promptRead(token.request);
        }
    });
    engine_->onEnd([&](std::int32_t request) {
        sampling.promptRead(request);
        done.push_back(request);
    });
    engine_->jumpUntil(std::numeric_limits<base::TimeNs>::max());
    sampling.addFirst();
    for (bool busy = true; busy || !sampling.allAdded();) {
        busy = engine_->step();
        for (const std::int32_t request : std::exchange(done, {})) {
            BatchResult result = engine_->takeResult(request);
            counts_.tokens += static_cast<std::int64_t>(result.result.ids.size());
            sampling.complete(request, result.result);
            ended(sampling.indexOf(request), result.result);
        }
        sampling.addReady();
    }
    engine_->onToken(nullptr);
    engine_->onEnd(nullptr);
}

/// What the engine that goes has counted.
void RolloutEngine::countEngine() {
    const BatchCounts& counts = engine_->counts();
    counts_.sharedTokens += counts.sharedTokens;
    counts_.preemptions += counts.preemptions;
    counts_.speculation.rows += engine_->speculation().rows;
    counts_.speculation.drafted += engine_->speculation().drafted;
    counts_.speculation.accepted += engine_->speculation().accepted;
}

RolloutCounts RolloutEngine::takeCounts() {
    return std::exchange(counts_, {});
}

} // namespace vitrine::engine
