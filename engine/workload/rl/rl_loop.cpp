// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/rl_loop.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/count_text.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_save.h"
#include "engine/workload/rl/answer_records.h"
#include "engine/workload/rl/exact_mode.h"
#include "engine/workload/rl/problem_choice.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kUsualSteps = 100;
constexpr std::int64_t kBatchTokens = 32768;   ///< of a micro-batch, see PolicyBatchOptions
constexpr std::int64_t kMostUnjudgedSteps = 3; ///< in a row; a judge that fails so often fails always
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::int64_t stepsOf(const Run& run) {
    return run.spec.maybeInteger("steps").value_or(kUsualSteps);
}

/// Tokens of the largest micro-batch that is likely.
std::int64_t likelyBatchTokens(const Run& run, GroupSampler& sampler, const ProblemSource& problems) {
    const auto prompt = static_cast<std::int64_t>(sampler.requestOf(problems.training(0)).prompt.size());
    const std::int64_t row = prompt + run.spec.integer("max_new_tokens");
    const std::int64_t rows = run.spec.integer("prompts") * run.spec.integer("samples");
    return std::min(run.spec.maybeInteger("batch").value_or(rows) * row, std::max(kBatchTokens, row));
}

TrainedRowOptions rowOptionsOf(const Run& run, bool values) {
    TrainedRowOptions out;
    const std::string cut = run.spec.text("cut_answers");
    out.cut = cut == "mask" ? CutAnswers::Mask : cut == "penalise" ? CutAnswers::Penalise : CutAnswers::Keep;
    out.penalty = run.spec.real("cut_penalty");
    out.keepsEqualGroups = run.spec.real("kl") > 0 || !values;
    return out;
}

/// Of the tokens that predict one of an answer.
double replayedShare(const Rollouts& rollouts) {
    std::int64_t given = 0;
    for (std::int64_t row = 0; row < rollouts.rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        for (std::int64_t token = rollouts.promptLengths[at]; token < rollouts.lengths[at]; ++token) {
            const bool counts = rollouts.isSaid(row, token);
            given += counts && rollouts.experts.has(row * rollouts.width + token - 1) ? 1 : 0;
        }
    }
    return static_cast<double>(given) / static_cast<double>(std::max<std::int64_t>(rollouts.answerTokens(), 1));
}

TrainingOutputOptions outputOptionsOf(const Run& run, const ModelSource& source, bool values) {
    std::vector<std::string> columns;
    for (const RlNumber& number : rlNumbers()) {
        if (number.value != &RlStep::loss) {
            columns.push_back(rlNumberName(number));
        }
    }
    TrainingOutputOptions out = trainingOutputOptions(run, source, values, std::move(columns));
    out.evaluation = "reward";
    out.evaluationColumn = true;
    return out;
}

/// A plan has no judges: every answer counts, and as much as the others.
void judgeAlike(std::vector<RolloutGroup>& groups) {
    for (RolloutGroup& group : groups) {
        for (GroupAnswer& answer : group.answers) {
            answer.reward = 0;
        }
    }
}

} // namespace

PolicyLoop::PolicyLoop(const Run& run, const ModelSource& source, FinetuneModel& model, const ProblemSource& problems,
                       Rewarder& rewarder)
    : run_(run), source_(source), model_(model), context_(model.model().context()), problems_(problems),
      rewarder_(rewarder), sampler_(run, source, model.model(), problems, rewarder), weights_(run, model),
      trainer_(model.model(), model.state(),
               memoryTechniques(run, model.model().config(), context_, likelyBatchTokens(run, sampler_, problems))),
      output_(outputOptionsOf(run, source, context_.can().computesValues)),
      training_(context_, model.state(), trainer_, model.packed(), output_,
                {stepsOf(run), learningRate(run, stepsOf(run) * run.spec.integer("updates")),
                 [this] { return progress(); }, run.spec.integer("updates")}),
      kept_(training_.steps(), run.spec.integer("eval_problems") > 0 ? run.spec.integer("eval_every") : 0,
            run.spec.integer("prompts") * run.spec.integer("samples")),
      groupRewards_(std::make_unique<Json>(Json::array())), answers_(std::make_unique<Json>(Json::array())),
      afterSleep_(std::make_unique<Json>(Json::object())) {
    if (run.spec.real("kl") > 0 && model.adapter() == nullptr) {
        initial_ = std::make_unique<InitialValues>(context_, model.state());
    }
    addTrainedMetrics(run, model, training_.steps());
    run.metrics[result::kRolloutWeights.key] = weights_.format();
    run.metrics[result::kCheckpoint.key] = checkpointingName(trainer_.techniques());
}

void PolicyLoop::run() {
    if (output_.isWritten()) {
        terms_ = std::make_shared<const Json>(resumeTerms(run_, source_, model_, trainedRows()));
    }
    resume();
    requireRoomForResult(run_, source_, model_, training_.first(), training_.steps());
    output_.begin(training_.first(), training_.steps());
    training_.run(
        {[this] { steps(); }, [this] { addMetrics(); }, [this] { saveResult(run_, source_, model_, trainer_, {}); }});
    addPeakPlace(run_, model_); // of writing it too
}

double PolicyLoop::clockSeconds() const {
    return static_cast<double>(context_.clock().now()) * 1e-9;
}

void PolicyLoop::steps() {
    traceTraining(model_, training_.steps());
    const std::int64_t done = training_.first() - 1;
    if (evaluates(done) && std::ranges::find(evalSteps_, done) == evalSteps_.end()) {
        RlStep before; // of the model that training began with, or of a step whose evaluation was cut
        evaluate(done, before);
    }
    for (std::int64_t number = training_.first(); number <= training_.steps(); ++number) {
        step(number);
        endWithoutJudges(number);
        training_.saveIfDue(number, run_.sinks.saveWanted && run_.sinks.saveWanted());
    }
}

void PolicyLoop::step(std::int64_t number) {
    const double begin = clockSeconds();
    RlStep now;
    Position position = position_;
    const std::vector<RolloutGroup> groups = rollouts(now, position);
    const TrainingStep trained = train(now, groups, number);
    position_ = std::move(position);
    keepGroupRewards(groups);
    if (evaluates(number) || number == 1 || number == training_.steps()) {
        keepAnswers(groups, number);
    }
    now.seconds = clockSeconds() - begin;
    steps_.push_back(now);
    try {
        if (evaluates(number)) {
            evaluate(number, steps_.back());
        }
    } catch (...) {
        report(trained, number); // the step is whole without its evaluation
        throw;
    }
    report(trained, number);
}

/// A step in which every answer waits for its end, or whose conversations all go on, says nothing of the judges.
void PolicyLoop::watchJudges(const SamplingCounts& counts) {
    if (counts.rewards > 0) {
        unjudgedSteps_ = unjudgedAnswers_ = 0;
    } else if (counts.judgeErrors > 0) {
        ++unjudgedSteps_;
        unjudgedAnswers_ += counts.judgeErrors;
        judgeError_ = counts.lastError;
    }
}

/// Nothing is learned without rewards, however long the run goes on.
void PolicyLoop::endWithoutJudges(std::int64_t number) {
    if (unjudgedSteps_ < kMostUnjudgedSteps) {
        return;
    }
    training_.keepState();
    throw base::BadInput(fmt::format("{}: no answer of the {} that ended in the last {} could be judged (the "
                                     "last error after step {}: {}); mend the judge{}",
                                     run_.spec.has("reward_command") ? "--reward-command" : "--checker",
                                     unjudgedAnswers_, base::countText(unjudgedSteps_, "step"), number, judgeError_,
                                     output_.isWritten() ? " and go on with --resume" : ""));
}

/// The memory of training goes to the sampler meanwhile, and its weights are those that rollouts compute with.
void PolicyLoop::withSampler(RlStep& now, const std::function<void()>& work) {
    const double begin = clockSeconds();
    trainer_.prepare();
    trainer_.giveBack();
    context_.memory().restartWindow();
    weights_.attach();
    now.weightSeconds += clockSeconds() - begin;
    const auto end = [&] {
        sampler_.engine().sleep();
        weights_.detach();
        now.rolloutPeak = std::max(now.rolloutPeak, static_cast<double>(context_.memory().statistics().windowPeak));
    };
    try {
        work();
    } catch (...) {
        rewarder_.drop();
        end();
        throw;
    }
    end();
    now.afterSleep = static_cast<double>(context_.memory().statistics().reserved);
    *afterSleep_ = categoryJson(context_.memory().statistics().currentByCategory);
}

std::vector<RolloutGroup> PolicyLoop::rollouts(RlStep& now, Position& position) {
    const kernels::TraceScope phase(context_.tracer(), base::ScopeKind::Phase, "rollout",
                                    static_cast<std::int32_t>(steps_.size() + 1));
    std::vector<RolloutGroup> groups;
    SamplingCounts counts;
    withSampler(now, [&] { groups = sampler_.sample(position.underWay, position.next, counts); });
    if (!context_.can().computesValues) {
        judgeAlike(groups);
    }
    const RolloutCounts sampled = sampler_.engine().takeCounts();
    preemptions_ += sampled.preemptions;
    now.rolloutSeconds = sampled.seconds;
    now.judgingSeconds = counts.judgingSeconds;
    now.rolloutRate = sampled.seconds > 0 ? static_cast<double>(sampled.tokens) / sampled.seconds : 0;
    now.draftAcceptance = sampled.speculation.drafted > 0 ? sampled.speculation.acceptanceRate() : kNothing;
    watchJudges(counts);
    now.judgeErrors = static_cast<double>(counts.judgeErrors);
    now.problems = static_cast<double>(counts.problems);
    now.leftOutGroups = static_cast<double>(counts.equalRight + counts.equalWrong);
    if (counts.ranOut) {
        base::logWarning(fmt::format("step {}: {} gave {} whose answers differ in their rewards, where {} "
                                     "should; the step goes on with these",
                                     steps_.size() + 1, base::countText(counts.problems, "problem"),
                                     base::countText(std::ssize(groups), "group"), run_.spec.integer("prompts")));
    }
    addGroupNumbers(now, groups);
    return groups;
}

TrainingStep PolicyLoop::train(RlStep& now, std::span<const RolloutGroup> groups, std::int64_t number) {
    now.loss = now.kl = now.clipShare = now.entropy = now.ratio = now.codesChanged = kNothing;
    now.replayedShare = now.expertDisagreement = kNothing;
    now.absDifference = now.largestDifference = now.mismatchK3 = now.truncatedShare = now.effectiveShare = kNothing;
    TrainedAnswers answers = trainedAnswers(groups, rowOptionsOf(run_, context_.can().computesValues));
    now.leftOutGroups += static_cast<double>(answers.leftOutGroups);
    if (kept_.answers(number)) {
        recordAnswers(context_.tracer(), number, groups, answers.places);
    }
    if (answers.rollouts.rows == 0) {
        if (!groups.empty()) {
            base::logWarning(fmt::format("step {}: no group of answers differs in its rewards, so the weights stay as "
                                         "they are",
                                         number));
        }
        TrainingStep nothing;
        nothing.loss = nothing.gradientNorm = kNothing;
        return nothing;
    }
    const kernels::TraceScope phase(context_.tracer(), base::ScopeKind::Phase, "train",
                                    static_cast<std::int32_t>(number));
    context_.memory().restartWindow();
    const TrainingStep done = update(now, groups, answers, number);
    now.trainingPeak = static_cast<double>(context_.memory().statistics().windowPeak);
    sampler_.engine().weightsChanged();
    return done;
}

TrainingStep PolicyLoop::update(RlStep& now, std::span<const RolloutGroup> groups, TrainedAnswers& answers,
                                std::int64_t number) {
    const std::int64_t updates = run_.spec.integer("updates");
    PolicyBatches batches = optionBatches(run_, answers.rollouts);
    PolicyStep step(run_, model_, trainer_, training_, answers.rollouts, batches,
                    {"", true, run_.spec.real("kl") > 0, initial_.get()});
    double begin = clockSeconds();
    step.begin();
    now.logProbSeconds = clockSeconds() - begin;
    begin = clockSeconds();
    TrainingStep done;
    const bool replays = !answers.rollouts.experts.empty();
    now.replayedShare = replays ? replayedShare(answers.rollouts) : kNothing;
    now.expertDisagreement = replays ? 0 : kNothing;
    now.loss = now.kl = now.clipShare = now.entropy = now.ratio = 0;
    const auto share = 1 / static_cast<double>(updates);
    std::unique_ptr<kernels::StopPause> whole; // a step that has changed the weights is brought to its end
    for (std::int64_t index = 1; index <= updates; ++index) {
        const bool saves = number == 1 && index == 1 && run_.spec.has("save_gradients");
        const TrainingStep each =
            step.update((number - 1) * updates + index,
                        saves ? std::function<void()>([this] { saveGradients(run_, model_); }) : nullptr);
        whole = whole == nullptr ? std::make_unique<kernels::StopPause>(context_) : std::move(whole);
        now.loss += share * each.loss;
        now.kl += share * step.means().kl;
        now.clipShare += share * step.means().clipShare;
        now.entropy += share * step.means().entropy;
        now.ratio += share * step.means().ratio;
        now.expertDisagreement += share * each.expertDisagreement;
        done.seconds += each.seconds;
        done.tokens += each.tokens;
        done.gradientNorm = each.gradientNorm;
        done.keptOnDevice = std::max(done.keptOnDevice, each.keptOnDevice);
    }
    now.updateSeconds = clockSeconds() - begin;
    done.loss = now.loss;
    now.absDifference = step.firstMeans().logprobAbsDiff;
    now.mismatchK3 = step.firstMeans().mismatchK3;
    now.truncatedShare = step.firstMeans().truncatedShare;
    if (!step.first().empty()) {
        addDifferences(now, answers.rollouts, step.first());
        sayIfInexact(run_.spec, number, now);
    }
    if (!training_.curves().codesChanged.empty()) {
        now.codesChanged = training_.curves().codesChanged.back();
    }
    recordRollouts(step, groups, answers, number);
    return done;
}

bool PolicyLoop::evaluates(std::int64_t number) const {
    const std::int64_t every = run_.spec.integer("eval_every");
    return every > 0 && (number % every == 0 || number == training_.steps()) && run_.spec.integer("eval_problems") > 0;
}

void PolicyLoop::evaluate(std::int64_t number, RlStep& now) {
    const kernels::TraceScope phase(context_.tracer(), base::ScopeKind::Phase, "evaluate",
                                    static_cast<std::int32_t>(number));
    const base::TimeNs begin = context_.clock().now();
    PolicyEvaluation found;
    withSampler(now, [&] { found = sampler_.evaluate(); });
    sampler_.engine().takeCounts();
    now.evaluationSeconds = static_cast<double>(context_.clock().now() - begin) * 1e-9;
    if (!context_.can().computesValues) {
        return;
    }
    training_.mark(base::TrainingMark::Evaluated, begin, number, found.reward);
    evalRewards_.push_back(found.reward);
    evalSteps_.push_back(number);
    if (found.judged > 0) {
        output_.writeEvaluation(number, found.reward);
    }
    context_.tracer().counter("eval_reward", found.reward);
    if (run_.sinks.metric) {
        run_.sinks.metric("eval_step", static_cast<double>(number));
        run_.sinks.metric("eval_reward", found.reward);
    }
    if (found.errors > 0) {
        base::logWarning(fmt::format("step {}: in the evaluation {} of {} got no reward", number, found.errors,
                                     base::countText(found.errors + found.judged, "answer")));
    }
}

void withPolicyLoop(const Run& run, const ModelSource& source, kernels::Context& context,
                    const std::function<void(PolicyLoop&)>& work) {
    if (run.spec.flag("router_replay") && source.config.experts == 0) {
        throw base::BadInput(fmt::format("router_replay: {} has no experts; leave it out", source.name));
    }
    FinetuneModel model(run, source, context);
    const std::unique_ptr<ProblemSource> problems = chosenProblems(run, source);
    const std::unique_ptr<Rewarder> rewarder = chosenRewarder(run, *problems);
    run.metrics[result::kRewardSource.key] = rewardSourceName(run.spec);
    PolicyLoop loop(run, source, model, *problems, *rewarder);
    work(loop);
}

} // namespace vitrine::engine
