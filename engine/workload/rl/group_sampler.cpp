// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/group_sampler.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/generation/answer_text.h"
#include "engine/workload/batch/batch.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

constexpr std::int64_t kMostDraws = 10; ///< times the problems of a step, of a dynamic one

double secondsSince(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Where an answer stands among those of a wave.
struct WavePlace {
    std::size_t group = 0, answer = 0;
};

std::int64_t waveId(std::size_t group, std::size_t answer, std::int64_t samples) {
    return static_cast<std::int64_t>(group) * samples + static_cast<std::int64_t>(answer);
}

/// Whether tokens are drawn from the softmax of the logits as they are.
bool isPlain(const Sampling& sampling) {
    return sampling.temperature == 1 && sampling.topK == 0 && sampling.topP >= 1 && sampling.minP == 0 &&
           sampling.repetitionPenalty == 1 && sampling.frequencyPenalty == 0 && sampling.presencePenalty == 0;
}

BatchOptions rolloutOptions(const Run& run, const ModelSource& source, Model& model, const RequestMaker& maker) {
    BatchWork work;
    work.tokenizer = maker.tokenizer();
    work.answerForm = maker.answerForm();
    work.mostForbidden = maker.mostForbidden();
    BatchOptions out = batchOptions(run, model.options(), work, source.config);
    const bool values = model.context().can().computesValues;
    // Without values a step is skipped where it is like the one before, which takes prefixes that nobody shares.
    out.cache.sharePrefixes = values;
    out.jumpEqualSteps = !values;
    const std::int64_t most = run.spec.integer("prompts") * run.spec.integer("samples");
    out.scheduler.slots = static_cast<std::int32_t>(std::min<std::int64_t>(out.scheduler.slots, most));
    return out;
}

/// The tokenizer is there where one problem is a text; its chat format too where it is a conversation.
void prepareTexts(RequestMaker& maker, const ModelSource& source, const ProblemSource& problems) {
    if (problems.training(0).tokens.empty()) {
        maker.prepareText();
    } else if (!source.tokenizerFile.empty()) {
        try {
            maker.prepareText();             // answers have texts for their judges
        } catch (const base::Unsupported&) { // no chat format: plain text
        }
    }
}

} // namespace

GroupSampler::GroupSampler(const Run& run, const ModelSource& source, Model& model, const ProblemSource& problems,
                           Rewarder& rewarder)
    : run_(run), model_(model), problems_(problems), rewarder_(rewarder),
      maker_(run, source, !model.context().can().computesValues), samples_(run.spec.integer("samples")),
      prompts_(run.spec.integer("prompts")), maxNewTokens_(run.spec.integer("max_new_tokens")),
      partialTokens_(run.spec.integer("partial_tokens")), dynamic_(run.spec.flag("dynamic_sampling")),
      positions_(contextLimit(source.config)), engine_((prepareTexts(maker_, source, problems), model),
                                                       maker_.tokenizer(), rolloutOptions(run, source, model, maker_)) {
}

GenerateRequest GroupSampler::requestOf(const Problem& problem) {
    GenerateRequest request = !problem.tokens.empty()    ? maker_.fromTokens(problem.tokens)
                              : problem.messages.empty() ? maker_.fromRawText(problem.text)
                                                         : maker_.fromMessages(problem.messages);
    if (positions_ > 0 && static_cast<std::int64_t>(request.prompt.size()) + 1 > positions_) {
        throw base::BadInput(fmt::format("{}: its prompt of {} tokens leaves no room in the model's context of {}",
                                         problem.name, request.prompt.size(), positions_));
    }
    return request;
}

std::string GroupSampler::textOf(const std::vector<std::int32_t>& ids) const {
    if (maker_.tokenizer() == nullptr) {
        return fmt::format("{}", fmt::join(ids, " "));
    }
    AnswerText text(maker_.answerForm(), maker_.tokenizer(), run_.spec.texts("stop"));
    for (const std::int32_t id : ids) {
        text.push(id);
    }
    text.finish();
    const auto found = text.channels().find("final");
    return found == text.channels().end() ? std::string() : found->second;
}

RolloutGroup GroupSampler::newGroup(std::int64_t number) {
    RolloutGroup group;
    group.number = number;
    group.problem = std::make_shared<const Problem>(problems_.training(number));
    group.prompt = requestOf(*group.problem).prompt;
    group.answers.resize(static_cast<std::size_t>(samples_));
    return group;
}

/// Tokens that an answer which has so many may still get, in all.
std::int64_t GroupSampler::roomFor(const GenerateRequest& request, std::int64_t has) const {
    const std::int64_t left = maxNewTokens_ - has;
    return positions_ > 0 ? std::min(left, positions_ - static_cast<std::int64_t>(request.prompt.size())) : left;
}

void GroupSampler::sampleWave(std::vector<RolloutGroup>& groups) {
    std::vector<GenerateRequest> requests;
    std::vector<WavePlace> places;
    for (std::size_t index = 0; index < groups.size(); ++index) {
        const RolloutGroup& group = groups[index];
        const GenerateRequest common = requestOf(*group.problem);
        for (std::size_t place = 0; place < group.answers.size(); ++place) {
            const GroupAnswer& answer = group.answers[place];
            if (answer.ended()) {
                continue;
            }
            GenerateRequest request = common;
            request.prompt = group.prompt;
            request.prompt.insert(request.prompt.end(), answer.ids.begin(), answer.ids.end());
            const std::int64_t room = roomFor(request, static_cast<std::int64_t>(answer.ids.size()));
            request.maxNewTokens = partialTokens_ > 0 ? std::min(room, partialTokens_) : room;
            request.drawLogprobs = !isPlain(request.sampling);
            request.returnsExperts = run_.spec.flag("router_replay");
            request.samplingNumber =
                static_cast<std::uint32_t>(waveId(static_cast<std::size_t>(group.number), place, samples_));
            requests.push_back(std::move(request));
            places.push_back({index, place});
        }
    }
    engine_.sample(std::move(requests), [&](std::size_t request, GenerateResult& result) {
        const WavePlace at = places[request];
        take(groups[at.group], at.answer, result, waveId(at.group, at.answer, samples_));
    });
}

/// Adds what was sampled; an answer that has ended goes to its judge.
void GroupSampler::take(RolloutGroup& group, std::size_t place, GenerateResult& result, std::int64_t id) {
    GroupAnswer& answer = group.answers[place];
    answer.ids.insert(answer.ids.end(), result.ids.begin(), result.ids.end());
    const std::vector<float>& logProbs = result.temperedLogprobs.empty() ? result.logprobs : result.temperedLogprobs;
    answer.logProbs.insert(answer.logProbs.end(), logProbs.begin(), logProbs.end());
    answer.logProbs.resize(answer.ids.size());
    answer.experts = std::move(result.experts); // also of what earlier steps sampled, as these weights read it
    answer.versions.resize(answer.ids.size(), static_cast<std::int32_t>(engine_.version()));
    longest_ = std::max(longest_, static_cast<std::int64_t>(group.prompt.size() + answer.ids.size()));
    const bool hasRoom =
        static_cast<std::int64_t>(answer.ids.size()) < maxNewTokens_ &&
        (positions_ == 0 || static_cast<std::int64_t>(group.prompt.size() + answer.ids.size()) < positions_);
    if (result.finish == FinishReason::Length && hasRoom) {
        return; // it goes on in the next step
    }
    answer.finish = result.finish;
    judge(group, answer, id, false);
}

void GroupSampler::judge(const RolloutGroup& group, const GroupAnswer& answer, std::int64_t id, bool isEvaluation) {
    if (!model_.context().can().computesValues) {
        return;
    }
    Attempt attempt;
    attempt.id = id;
    attempt.problem = group.problem;
    attempt.messages = group.problem->messages;
    attempt.answer = textOf(answer.ids);
    attempt.cut = answer.cut();
    attempt.isEvaluation = isEvaluation;
    rewarder_.judge(std::move(attempt));
}

/// Gives what judges say, until they have said all. Throws Cancelled.
void GroupSampler::collect(const std::function<void(const Judgement&)>& take) {
    while (rewarder_.waiting() > 0) {
        model_.context().throwIfStopped();
        for (const Judgement& judgement : rewarder_.take(true)) {
            take(judgement);
        }
    }
}

void GroupSampler::collectAll(std::vector<RolloutGroup>& groups, SamplingCounts& counts) {
    const auto begin = std::chrono::steady_clock::now();
    collect([&](const Judgement& judgement) {
        RolloutGroup& group = groups[static_cast<std::size_t>(judgement.id / samples_)];
        GroupAnswer& answer = group.answers[static_cast<std::size_t>(judgement.id % samples_)];
        answer.reward = judgement.reward;
        answer.error = judgement.reward  ? std::string()
                       : judgement.reply ? "the judge went on with the conversation, which has one turn"
                                         : judgement.error;
        if (!answer.error.empty() && counts.judgeErrors++ == 0) {
            base::logWarning(fmt::format("{}: an answer has no reward: {}", group.problem->name, answer.error));
        }
    });
    counts.judgingSeconds += secondsSince(begin);
}

/// Takes out groups that have ended and teach nothing.
void GroupSampler::dropEqual(std::vector<RolloutGroup>& groups, SamplingCounts& counts) const {
    std::erase_if(groups, [&](const RolloutGroup& group) {
        const bool drops = group.ended() && !group.differs();
        if (drops) {
            (group.meanReward().value_or(0) > 0 ? counts.equalRight : counts.equalWrong) += 1;
        }
        return drops;
    });
}

std::vector<RolloutGroup> GroupSampler::sample(std::vector<RolloutGroup>& underWay, std::int64_t& next,
                                               SamplingCounts& counts) {
    const bool draws = dynamic_ && model_.context().can().computesValues;
    std::vector<RolloutGroup> all; ///< that were sampled as far as they go in this step
    std::vector<RolloutGroup> wave = std::exchange(underWay, {});
    while (static_cast<std::int64_t>(all.size()) < prompts_) {
        const std::int64_t lacking = prompts_ - static_cast<std::int64_t>(all.size() + wave.size());
        const std::int64_t drawn = draws ? std::min(lacking, kMostDraws * prompts_ - counts.problems) : lacking;
        for (std::int64_t i = 0; i < drawn; ++i) {
            wave.push_back(newGroup(next++));
            ++counts.problems;
        }
        if (wave.empty()) {
            counts.ranOut = true;
            break;
        }
        sampleWave(wave);
        collectAll(wave, counts);
        if (draws) {
            dropEqual(wave, counts);
        }
        std::ranges::move(wave, std::back_inserter(all));
        wave.clear();
    }
    std::vector<RolloutGroup> ended;
    for (RolloutGroup& group : all) {
        if (!group.ended()) {
            // Its answers go on with other weights, and checkpoints keep no experts.
            std::ranges::for_each(group.answers, [](GroupAnswer& answer) { answer.experts = {}; });
        }
        (group.ended() ? ended : underWay).push_back(std::move(group));
    }
    return ended;
}

PolicyEvaluation GroupSampler::evaluate() {
    const std::int64_t count = std::min(run_.spec.integer("eval_problems"), problems_.evaluations());
    if (count == 0) {
        return {};
    }
    std::vector<RolloutGroup> groups;
    std::vector<GenerateRequest> requests;
    for (std::int64_t number = 0; number < count; ++number) {
        RolloutGroup& group = groups.emplace_back();
        group.problem = std::make_shared<const Problem>(problems_.evaluation(number));
        group.answers.resize(1);
        GenerateRequest request = requestOf(*group.problem);
        group.prompt = request.prompt;
        request.maxNewTokens = roomFor(request, 0);
        request.sampling = Sampling{};
        requests.push_back(std::move(request));
    }
    engine_.sample(std::move(requests), [&](std::size_t index, GenerateResult& result) {
        GroupAnswer& answer = groups[index].answers.front();
        answer.ids = std::move(result.ids);
        answer.finish = result.finish;
        judge(groups[index], answer, static_cast<std::int64_t>(index), true);
    });
    PolicyEvaluation out;
    double sum = 0;
    collect([&](const Judgement& judgement) {
        sum += judgement.reward.value_or(0);
        out.judged += judgement.reward ? 1 : 0;
        out.errors += judgement.reward ? 0 : 1;
    });
    out.reward = out.judged == 0 ? 0 : sum / static_cast<double>(out.judged);
    return out;
}

} // namespace vitrine::engine
