// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/step_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/generation/acceptance.h"
#include "engine/generation/batch_pool.h"

namespace vitrine::engine {
namespace {

bool isPrefill(const ScheduledRow& scheduled) {
    return scheduled.kind == RowKind::Prefill || scheduled.request < 0;
}

/// Whether the logits at this position score a token of the prompt. `request` may be null.
bool lacksScore(const ActiveRequest* request, const ScheduledRow& scheduled, std::int64_t position) {
    return request != nullptr && scheduled.kind == RowKind::Prefill && request->lacksScore(position);
}

} // namespace

StepEngine::StepEngine(Model& model, const Speculation& speculation) : model_(model), speculation_(speculation) {
    if (speculation_.on()) {
        checkCosts_ = CheckCosts(model, speculation_.drafter->bytesPerToken());
    }
}

void StepEngine::drop() noexcept {
    model_.dropLaunched();
    pending_.reset();
}

void StepEngine::advance(std::unique_ptr<PendingStep>& next) {
    bool launched = false;
    StepOutput out;
    if (!run(*next, launched, out)) {
        return;
    }
    entered(*next);
    if (!launched) {
        land(out, *next);
        return;
    }
    const std::unique_ptr<PendingStep> last = std::exchange(pending_, std::move(next));
    if (last != nullptr) {
        land(model_.finishLaunched(), *last);
    }
}

/// Launches the step after the pending one or, when that has ended, runs it. False when nothing is left of it.
bool StepEngine::run(PendingStep& pending, bool& launched, StepOutput& out) {
    fill(pending);
    if (mayLaunch(pending) && launch(pending)) {
        launched = true;
        return true;
    }
    if (pending_ != nullptr) {
        landLast();
        fill(pending); // its ids are known now, and some of its requests may have ended
        if (pending.batch.sequences.empty()) {
            return false;
        }
    }
    pending.launched = now();
    pending.once = model_.context().onceTime();
    out = model_.step(pending.batch, *cache_);
    ran(pending);
    return true;
}

void StepEngine::landLast() {
    const std::unique_ptr<PendingStep> last = std::move(pending_);
    land(model_.finishLaunched(), *last);
}

bool StepEngine::mayLaunch(const PendingStep& pending) const {
    return pending.known && std::none_of(pending.sampling.begin(), pending.sampling.end(), kernels::needsHistory);
}

/// The step's sequences and sampled rows, from its schedule and from what is known by now.
void StepEngine::fill(PendingStep& pending) {
    // Requests that ended meanwhile have no sequence any more.
    std::erase_if(pending.schedule.rows, [this](const ScheduledRow& scheduled) { return !lives(scheduled); });
    const std::vector<ScheduledRow>& rows = pending.schedule.rows;
    const bool anyPrefill = std::any_of(rows.begin(), rows.end(), isPrefill);
    pending.decodes = !anyPrefill;
    pending.known = true;
    pending.sampled.clear();
    pending.scored.clear();
    pending.sampling.clear();
    StepBatch& batch = pending.batch;
    batch = {};
    batch.name = !anyPrefill ? "decode" : std::all_of(rows.begin(), rows.end(), isPrefill) ? "prefill" : "mixed";
    batch.index = static_cast<std::int32_t>(pending.schedule.index);
    batch.repeats = pending.decodes;
    pending.drafts = false;
    std::int64_t longest = 1;
    for (const ScheduledRow& scheduled : rows) {
        longest = std::max(longest, scheduled.tokens);
        pending.drafts = pending.drafts || scheduled.drafts > 0;
    }
    pending.padding.assign(static_cast<std::size_t>(longest), kNoToken);
    for (const ScheduledRow& scheduled : rows) {
        addRow(pending, scheduled);
    }
    complete(pending);
    const bool replays = pending.decodes && model_.context().traits().features.fewStepSizes;
    model_.context().passFirstUse(replays ? kernels::LaunchKind::Replayed : kernels::LaunchKind::Launched,
                                  static_cast<std::int64_t>(model_.config().layers.size()),
                                  replays ? static_cast<std::int64_t>(batch.sequences.size()) : 0);
    batch.sampling = pending.sampling;
    batch.carried = pending.carried;
    pending.launched = now();
    pending.once = model_.context().onceTime();
}

void StepEngine::addRow(PendingStep& pending, const ScheduledRow& scheduled) {
    const auto count = static_cast<std::size_t>(scheduled.tokens);
    StepSequence sequence{scheduled.sequence, {pending.padding.data(), count}, scheduled.samples || pending.decodes};
    sequence.logitTokens = 1 + scheduled.drafts;
    const ActiveRequest* const request = unended(scheduled.request);
    const bool known =
        request != nullptr && scheduled.kind != RowKind::Padding &&
        scheduled.begin + scheduled.tokens <= static_cast<std::int64_t>(request->historyAndDraft().size());
    pending.known = pending.known && (known || scheduled.kind != RowKind::Prefill);
    if (known) {
        sequence.tokens = request->historyAndDraft().subspan(static_cast<std::size_t>(scheduled.begin), count);
    }
    if (request != nullptr && scheduled.kind == RowKind::Prefill) {
        const std::int64_t prompt = request->result().promptTokens;
        sequence.promptTokens = scheduled.begin < prompt ? prompt : 0;
    }
    const std::int64_t end = scheduled.begin + scheduled.tokens;
    std::int64_t scored = scheduled.begin;
    while (scored < end && !lacksScore(request, scheduled, scored)) {
        ++scored;
    }
    if (scored < end) {
        sequence.wantsLogits = true;
        sequence.logitTokens = end - scored;
    }
    pending.batch.sequences.push_back(sequence);
    pending.batch.experts = pending.batch.experts || (request != nullptr && request->request().returnsExperts);
    if (sequence.wantsLogits) {
        addLogits(pending, scheduled, request, known);
    }
}

/// What becomes of the rows of logits of the sequence that was added last.
void StepEngine::addLogits(PendingStep& pending, const ScheduledRow& scheduled, const ActiveRequest* request,
                           bool known) {
    const std::int64_t rows = pending.batch.sequences.back().logitTokens;
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t position = scheduled.begin + scheduled.tokens - rows + row;
        if (lacksScore(request, scheduled, position)) {
            pending.scored.push_back({pending.sampled.size(), scheduled.request, position});
            pending.sampled.push_back(-1);
            pending.sampling.push_back(request->scoring(position));
            continue;
        }
        const bool reads = scheduled.kind == RowKind::Prefill; // only its last token is followed by a new one
        const bool counts = scheduled.samples && request != nullptr && (!reads || row == rows - 1);
        const std::int64_t ahead = !known ? 1 : reads ? 0 : row;
        pending.sampled.push_back(counts ? scheduled.request : -1);
        pending.sampling.push_back(counts ? request->sampling(ahead) : kernels::SampleParameters{});
        pending.batch.drawLogprobs = pending.batch.drawLogprobs || (counts && request->request().drawLogprobs);
    }
}

void StepEngine::draft(std::span<ActiveRequest* const> requests) {
    const base::TimeNs begin = now();
    const bool plain = wantsPlainStep();
    std::vector<DraftJob> jobs;
    const CheckCost cost = checkCosts_.of(std::max<std::int64_t>(std::ssize(requests), 1));
    for (ActiveRequest* const request : requests) {
        request->dropDraft();
        // The step gives a token more than the draft has.
        const std::int64_t tokens = request->pace().next(request->remaining() - 1, speculation_.draftTokens, cost);
        if (tokens > 0 && !plain) {
            jobs.push_back({request, tokens});
        }
    }
    if (!jobs.empty()) {
        speculation_.drafter->draft(jobs);
    }
    if (model_.context().traits().features.fewStepSizes) {
        fillDrafts(requests);
    }
    speculated_.draftSeconds += static_cast<double>(now() - begin) * 1e-9;
}

bool StepEngine::allRest(std::span<ActiveRequest* const> requests) {
    return std::ranges::all_of(requests, [](ActiveRequest* request) { return request->pace().rests(); });
}

/// Where drafts never end, some steps go without, so that the result can compare.
bool StepEngine::wantsPlainStep() const {
    constexpr std::int64_t kEnough = 8;
    constexpr std::int64_t kEvery = 16;
    return speculated_.plainSteps < kEnough && speculated_.checkSteps >= kEvery * (speculated_.plainSteps + 1);
}

/// Steps over several requests have a few numbers of drafted tokens. Tokens of no use bring a step up to the next one.
void StepEngine::fillDrafts(std::span<ActiveRequest* const> requests) const {
    const std::int64_t limit = speculation_.draftTokens;
    std::int64_t drafted = 0;
    for (const ActiveRequest* const request : requests) {
        drafted += static_cast<std::int64_t>(request->draft().size());
    }
    const auto most = static_cast<std::int32_t>(limit * static_cast<std::int64_t>(requests.size()));
    std::int64_t lacking = bucketRows(static_cast<std::int32_t>(drafted), most) - drafted;
    for (ActiveRequest* const request : requests) {
        const auto has = static_cast<std::int64_t>(request->draft().size());
        const std::int64_t room = std::min(limit, request->remaining() - 1) - has;
        const std::int64_t fillers = std::clamp<std::int64_t>(room, 0, lacking);
        if (fillers > 0) {
            request->fillDraft(fillers);
            lacking -= fillers;
        }
    }
}

/// The rows of logits of one request in a step.
struct StepEngine::RequestRows {
    std::int32_t request = 0;
    std::size_t row = 0;
    std::int64_t drafted = 0; ///< it has one row more than these
    std::int64_t guessed = 0; ///< the first of them; the others only fill the step
    std::int64_t kept = 0;    ///< the first of the guessed ones
};

/// Those of requests that have not ended.
std::vector<StepEngine::RequestRows> StepEngine::requestRows(const StepOutput& out, const PendingStep& pending) const {
    std::vector<RequestRows> requests;
    for (std::size_t row = 0; row < pending.sampled.size(); ++row) {
        const std::int32_t request = pending.sampled[row];
        if (!requests.empty() && requests.back().request == request) {
            ++requests.back().drafted;
        } else if (unended(request) != nullptr) {
            requests.push_back({request, row});
        }
    }
    for (RequestRows& rows : requests) {
        rows.guessed = std::min(rows.drafted, static_cast<std::int64_t>(unended(rows.request)->guesses().size()));
        rows.kept = keep(out, pending, rows);
    }
    return requests;
}

/// How many of its guesses are right.
std::int64_t StepEngine::keep(const StepOutput& out, const PendingStep& pending, const RequestRows& rows) const {
    if (!model_.context().can().computesValues) {
        return assumedAcceptedTokens(speculation_.assumedAcceptance, rows.guessed,
                                     pending.schedule.index + rows.request);
    }
    const auto guessed = static_cast<std::size_t>(rows.guessed);
    return acceptedTokens(unended(rows.request)->guesses().first(guessed),
                          std::span(out.ids).subspan(rows.row, guessed));
}

/// Gives the tokens of a step to its requests.
void StepEngine::land(const StepOutput& out, const PendingStep& pending) {
    const base::TimeNs begin = std::max(pending.launched, landedAt_);
    landedAt_ = std::max(now(), begin);
    giveExperts(out, pending);
    std::vector<RequestRows> requests = requestRows(out, pending);
    std::int64_t tokens = 0;
    for (const RequestRows& rows : requests) {
        tokens += 1 + rows.kept;
    }
    landed(pending, begin, tokens);
    const std::vector<std::int32_t> failed = giveScores(out, pending);
    std::erase_if(requests, [&](RequestRows& rows) {
        // A callback may have cancelled it.
        const bool goesOn = unended(rows.request) != nullptr && std::ranges::find(failed, rows.request) == failed.end();
        if (goesOn) {
            give(out, pending, rows);
        }
        return !goesOn;
    });
    if (speculation_.on()) {
        noteDrafts(pending, requests, static_cast<double>(landedAt_ - begin) * 1e-9);
    }
}

/// Gives requests the experts of the tokens that the step has read for them. Tokens that fill it up come after all.
void StepEngine::giveExperts(const StepOutput& out, const PendingStep& pending) const {
    std::int64_t row = 0;
    for (const ScheduledRow& scheduled : pending.schedule.rows) {
        ActiveRequest* const request =
            !pending.batch.experts || scheduled.kind == RowKind::Padding ? nullptr : unended(scheduled.request);
        if (request != nullptr) {
            request->takeExperts(scheduled.begin, scheduled.tokens, out.experts, row);
        }
        row += scheduled.tokens;
    }
}

/// Gives requests the scores of their prompts. Returns those of which a logit was not finite.
std::vector<std::int32_t> StepEngine::giveScores(const StepOutput& out, const PendingStep& pending) {
    std::vector<std::int32_t> failed;
    for (const PendingStep::ScoredRow& scored : pending.scored) {
        ActiveRequest* const request = unended(scored.request);
        if (request == nullptr || (!failed.empty() && failed.back() == scored.request)) {
            continue;
        }
        const float logprob = out.logprobs.empty() ? 0 : out.logprobs[scored.row];
        if (!std::isfinite(logprob)) {
            broken(*request, pending);
            failed.push_back(scored.request);
            continue;
        }
        request->takeScore(scored.position, {logprob, bestOf(out, pending, scored.row, topLogprobsOf(*request))});
    }
    return failed;
}

/// The best tokens of one row of logits.
std::vector<std::pair<std::int32_t, float>> StepEngine::bestOf(const StepOutput& out, const PendingStep& pending,
                                                               std::size_t row, std::int32_t wanted) {
    const auto best = static_cast<std::size_t>(pending.batch.topLogprobs);
    const std::size_t count = std::min(best, static_cast<std::size_t>(wanted));
    std::vector<std::pair<std::int32_t, float>> top;
    top.reserve(count);
    for (std::size_t i = row * best; i < row * best + count; ++i) {
        top.emplace_back(out.topIds[i], out.topLogprobs[i]);
    }
    return top;
}

/// Where the request ends inside its draft, what stands behind its end is taken out of `rows`.
void StepEngine::give(const StepOutput& out, const PendingStep& pending, RequestRows& rows) {
    ActiveRequest& request = *unended(rows.request);
    // The first token of an answer comes from its prompt.
    speculated_.rows += request.result().ids.empty() ? 0 : 1;
    if (rows.guessed > 0) {
        request.pace().noteChecked(rows.guessed, rows.kept);
    }
    for (std::int64_t i = 0; i <= rows.kept; ++i) {
        if (!take(out, pending, rows.row + static_cast<std::size_t>(i)) || unended(rows.request) == nullptr) {
            rows.guessed = std::min(rows.guessed, i);
            rows.kept = i;
            return;
        }
    }
    if (rows.kept < rows.drafted) {
        rollBack(*unended(rows.request), rows.drafted - rows.kept);
    }
}

/// Gives its request the token of one row of logits. False where there is none.
bool StepEngine::take(const StepOutput& out, const PendingStep& pending, std::size_t row) {
    ActiveRequest& request = *unended(pending.sampled[row]);
    if (!out.logprobs.empty() && !std::isfinite(out.logprobs[row])) {
        broken(request, pending);
        return false;
    }
    if (request.request().drawLogprobs) {
        request.takeDraw(out.drawLogprob(row, kernels::DrawLogprob::Drawn),
                         out.drawLogprob(row, kernels::DrawLogprob::Tempered));
    }
    accept(request, out.ids[row], out.logprobs.empty() ? 0 : out.logprobs[row],
           bestOf(out, pending, row, topLogprobsOf(request)));
    return true;
}

void StepEngine::noteDrafts(const PendingStep& pending, std::span<const RequestRows> requests, double seconds) {
    std::int64_t drafted = 0;
    std::int64_t accepted = 0;
    for (const RequestRows& rows : requests) {
        drafted += rows.guessed;
        accepted += rows.kept;
    }
    if (pending.decodes) {
        (pending.drafts ? speculated_.checkSteps : speculated_.plainSteps) += 1;
        (pending.drafts ? speculated_.checkTime : speculated_.plainTime).add(seconds);
    }
    speculated_.drafted += drafted;
    speculated_.accepted += accepted;
    model_.context().tracer().counter("drafted_tokens", static_cast<double>(drafted));
    model_.context().tracer().counter("accepted_tokens", static_cast<double>(accepted));
}

} // namespace vitrine::engine
