// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/group_sampler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "base/count_text.h"
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
      partialTokens_(run.spec.integer("partial_tokens")), turns_(run.spec.integer("turns")),
      dynamic_(run.spec.flag("dynamic_sampling")), positions_(contextLimit(source.config)),
      engine_((prepareTexts(maker_, source, problems), model), maker_.tokenizer(), options(source)) {}

BatchOptions GroupSampler::options(const ModelSource& source) {
    BatchOptions out = rolloutOptions(run_, source, model_, maker_);
    const auto prompt = static_cast<std::int64_t>(requestOf(problems_.training(0)).prompt.size());
    speculation_ = std::make_unique<RunSpeculation>(run_, source, model_.context(), out.cache,
                                                    DraftPool{out.scheduler.slots, prompt + maxNewTokens_});
    out.speculation = speculation_->speculation();
    return out;
}

GenerateRequest GroupSampler::requestOf(const Problem& problem) {
    GenerateRequest request = !problem.tokens.empty()    ? maker_.fromTokens(problem.tokens)
                              : problem.messages.empty() ? maker_.fromRawText(problem.text)
                                                         : maker_.fromMessages(problem.messages);
    if (positions_ > 0 && static_cast<std::int64_t>(request.prompt.size()) + 1 > positions_) {
        throw base::BadInput(fmt::format("{}: its prompt of {} leaves no room in the model's context of {}",
                                         problem.name, base::countText(std::ssize(request.prompt), "token"),
                                         positions_));
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

std::vector<std::string> GroupSampler::textsOf(const std::vector<std::int32_t>& ids) const {
    AnswerText text(maker_.answerForm(), maker_.tokenizer(), run_.spec.texts("stop"));
    std::vector<std::string> out;
    out.reserve(ids.size());
    for (const std::int32_t id : ids) {
        out.push_back(text.push(id).text);
    }
    if (const std::string rest = text.finish().text; !out.empty()) {
        out.back() += rest;
    }
    return out;
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

GenerateRequest GroupSampler::requestOf(const Wave& wave, std::int64_t id) {
    const RolloutGroup& group = wave.groupOf(id);
    const GroupAnswer& answer = wave.answerOf(id);
    GenerateRequest request = requestOf(*group.problem);
    request.prompt = group.prompt;
    request.prompt.insert(request.prompt.end(), answer.ids.begin(), answer.ids.end());
    request.maxNewTokens = roomFor(request, static_cast<std::int64_t>(answer.ids.size()));
    if (wave.evaluates) {
        request.sampling = Sampling{};
        return request;
    }
    request.maxNewTokens = partialTokens_ > 0 ? std::min(request.maxNewTokens, partialTokens_) : request.maxNewTokens;
    request.drawLogprobs = !isPlain(request.sampling) || model_.context().traits().features.exactRows;
    request.returnsExperts = run_.spec.flag("router_replay");
    request.samplingNumber = static_cast<std::uint32_t>(group.number * samples_ + id % samples_);
    return request;
}

void GroupSampler::sampleWave(const Wave& wave, const WaveIds& ids) {
    std::vector<GenerateRequest> requests;
    for (const std::int64_t id : ids) {
        requests.push_back(requestOf(wave, id));
    }
    engine_.sample(std::move(requests),
                   [&](std::size_t request, GenerateResult& result) { take(wave, ids[request], result); });
}

/// Adds what was sampled; an answer that has ended goes to its judge.
void GroupSampler::take(const Wave& wave, std::int64_t id, GenerateResult& result) {
    const RolloutGroup& group = wave.groupOf(id);
    GroupAnswer& answer = wave.answerOf(id);
    answer.ids.insert(answer.ids.end(), result.ids.begin(), result.ids.end());
    const std::vector<float>& logProbs = result.temperedLogprobs.empty() ? result.logprobs : result.temperedLogprobs;
    answer.logProbs.insert(answer.logProbs.end(), logProbs.begin(), logProbs.end());
    answer.logProbs.resize(answer.ids.size());
    answer.experts = std::move(result.experts); // also of what earlier steps sampled, as these weights read it
    answer.versions.resize(answer.ids.size(), static_cast<std::int32_t>(engine_.version()));
    if (result.finish == FinishReason::Length && hasRoom(group, answer)) {
        return; // it goes on in the next step
    }
    answer.finish = result.finish;
    judge(group, answer, id, wave.evaluates);
}

bool GroupSampler::hasRoom(const RolloutGroup& group, const GroupAnswer& answer) const {
    const auto has = static_cast<std::int64_t>(answer.ids.size());
    return has < maxNewTokens_ &&
           (positions_ == 0 || static_cast<std::int64_t>(group.prompt.size()) + has < positions_);
}

void GroupSampler::judge(const RolloutGroup& group, const GroupAnswer& answer, std::int64_t id, bool isEvaluation) {
    if (!model_.context().can().computesValues) {
        return;
    }
    Attempt attempt;
    attempt.id = id;
    attempt.problem = group.problem;
    attempt.turn = static_cast<std::int64_t>(answer.turns.size()) / 2;
    if (run_.spec.has("system") && !group.problem->messages.empty()) {
        attempt.messages.emplace_back("system", run_.spec.text("system"));
    }
    attempt.messages.insert(attempt.messages.end(), group.problem->messages.begin(), group.problem->messages.end());
    attempt.messages.insert(attempt.messages.end(), answer.turns.begin(), answer.turns.end());
    attempt.answer = textOf(answer.lastAnswer());
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

/// What follows the answer's tokens where the user replies: the end of the answer's message, unless it was sampled, and
/// the reply up to where the next answer begins. Empty where the chat template writes something else than what was
/// said.
std::vector<std::int32_t> GroupSampler::tokensOfReply(const RolloutGroup& group, const GroupAnswer& answer,
                                                      const std::string& said, const std::string& reply) {
    if (group.problem->messages.empty() || !maker_.hasChat()) {
        return maker_.tokenizer() == nullptr ? std::vector<std::int32_t>() : maker_.tokenizer()->encode(reply, false);
    }
    std::vector<ChatMessage> messages = group.problem->messages;
    messages.insert(messages.end(), answer.turns.begin(), answer.turns.end());
    messages.emplace_back("assistant", said);
    ChatOptions options = maker_.chatOptions();
    options.continueFinalMessage = true;
    options.addGenerationPrompt = false;
    const std::vector<std::int32_t> before = maker_.fromChat(messages, options).prompt;
    messages.emplace_back("user", reply);
    const std::vector<std::int32_t> after = maker_.fromChat(messages, maker_.chatOptions()).prompt;
    if (after.size() <= before.size() || !std::equal(before.begin(), before.end(), after.begin())) {
        return {};
    }
    const std::vector<std::int32_t> ends = maker_.chatFormat()->answerEnds();
    const bool ended = answer.finish == FinishReason::StopToken;
    const bool again = ended && std::ranges::find(ends, after[before.size()]) != ends.end();
    return {after.begin() + static_cast<std::ptrdiff_t>(before.size()) + (again ? 1 : 0), after.end()};
}

/// Whether the conversation goes on: else the answer has an error.
bool GroupSampler::goOn(const RolloutGroup& group, GroupAnswer& answer, const std::string& reply) {
    if (static_cast<std::int64_t>(answer.turns.size()) / 2 + 1 >= turns_) {
        answer.error = fmt::format("the judge goes on with the conversation, which may have {}; give more turns, or a "
                                   "reward",
                                   base::countText(turns_, "turn"));
        return false;
    }
    if (answer.cut()) {
        answer.error = "the judge goes on with an answer that was too long";
        return false;
    }
    const std::string said = textOf(answer.lastAnswer());
    const std::vector<std::int32_t> tokens = tokensOfReply(group, answer, said, reply);
    if (tokens.empty()) {
        answer.error = "the conversation cannot go on, because the chat template writes what was said in another way";
        return false;
    }
    const FinishReason finish = answer.finish;
    answer.goOn(said, reply, tokens);
    if (!hasRoom(group, answer)) {
        answer.finish = finish;
        answer.error = "the judge's message leaves no room for another answer";
        return false;
    }
    return true;
}

namespace {

/// Advantages are made in float32, and squares of rewards must be numbers there.
constexpr double kLargestReward = 1e12;

void takeReward(GroupAnswer& answer, const Judgement& judgement) {
    answer.error = judgement.error;
    answer.judgeSeconds = judgement.seconds;
    if (judgement.reward && !(std::fabs(*judgement.reward) <= kLargestReward)) {
        answer.error = fmt::format("the reward {:g} is beyond {:g}", *judgement.reward, kLargestReward);
        return;
    }
    answer.reward = judgement.reward;
}

} // namespace

/// Waits for all of them. Returns the answers that go on.
GroupSampler::WaveIds GroupSampler::takeJudgements(const Wave& wave, SamplingCounts& counts) {
    const auto begin = std::chrono::steady_clock::now();
    WaveIds more;
    collect([&](const Judgement& judgement) {
        RolloutGroup& group = wave.groupOf(judgement.id);
        GroupAnswer& answer = wave.answerOf(judgement.id);
        if (judgement.reply && goOn(group, answer, *judgement.reply)) {
            more.push_back(judgement.id);
            return;
        }
        if (!judgement.reply) {
            takeReward(answer, judgement);
        }
        if (answer.error.empty()) {
            ++counts.rewards;
            return;
        }
        counts.lastError = answer.error;
        if (counts.judgeErrors++ == 0) {
            base::logWarning(fmt::format("{}: an answer has no reward: {}", group.problem->name, answer.error));
        }
    });
    std::ranges::sort(more); // judges end in any order
    counts.judgingSeconds += secondsSince(begin);
    return more;
}

/// With all turns.
void GroupSampler::play(const Wave& wave, SamplingCounts& counts) {
    WaveIds ids;
    for (std::size_t index = 0; index < wave.groups.size(); ++index) {
        for (std::size_t place = 0; place < wave.groups[index].answers.size(); ++place) {
            if (!wave.groups[index].answers[place].ended()) {
                ids.push_back(static_cast<std::int64_t>(index) * wave.samples + static_cast<std::int64_t>(place));
            }
        }
    }
    while (!ids.empty()) {
        sampleWave(wave, ids);
        ids = takeJudgements(wave, counts);
    }
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
        play({wave, samples_}, counts);
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
    std::vector<RolloutGroup> groups;
    for (std::int64_t number = 0; number < count; ++number) {
        RolloutGroup& group = groups.emplace_back();
        group.problem = std::make_shared<const Problem>(problems_.evaluation(number));
        group.prompt = requestOf(*group.problem).prompt;
        group.answers.resize(1);
    }
    SamplingCounts counts;
    play({groups, 1, true}, counts);
    PolicyEvaluation out;
    double sum = 0;
    for (const RolloutGroup& group : groups) {
        const std::optional<double>& reward = group.answers.front().reward;
        sum += reward.value_or(0);
        (reward ? out.judged : out.errors) += 1;
    }
    out.reward = out.judged == 0 ? 0 : sum / static_cast<double>(out.judged);
    return out;
}

} // namespace vitrine::engine
