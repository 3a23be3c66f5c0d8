// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/batch_summary.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/token_facet.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

using base::RequestChange;
using base::SlotState;

constexpr std::int32_t kMostSlots = 1 << 16;
constexpr std::int32_t kMostRequests = 1 << 24;

double secondsOf(base::TimeNs ns) {
    return static_cast<double>(ns) * 1e-9;
}

bool numbered(std::int32_t value, std::int32_t most) {
    return value >= 0 && value < most;
}

void takeSteps(BatchSide& side, const profiler::RunTimeline& timeline) {
    side.steps.assign(timeline.requests().steps().begin(), timeline.requests().steps().end());
    for (base::BatchStepEvent& step : side.steps) {
        step.begin -= side.origin;
        step.end = std::max(step.begin, step.end - side.origin);
        side.end = std::max(side.end, step.end);
        side.generated += step.sampled;
        side.decodeSteps += step.sampled > 0 ? 1 : 0;
        side.prefillTokens += step.prefillTokens;
        side.paddingTokens += step.paddingTokens;
        side.mostPages = std::max(side.mostPages, step.usedPages);
        side.poolPages = std::max(side.poolPages, step.usedPages + step.cachedPages + step.freePages);
    }
}

void takeBorder(BatchRequest& request, const base::RequestEvent& event, const profiler::RunTimeline& timeline) {
    request.phase = event.phase;
    request.slot = event.slot >= 0 ? event.slot : request.slot;
    switch (event.phase) {
    case RequestChange::Arrived:
        request.arrived = event.time;
        request.promptTokens = event.tokens;
        break;
    case RequestChange::Admitted:
        request.admitted = request.admitted < 0 ? event.time : request.admitted;
        break;
    case RequestChange::FirstToken:
        request.firstToken = event.time;
        request.outputTokens = std::max(request.outputTokens, event.tokens);
        break;
    case RequestChange::Preempted:
        ++request.preemptions;
        request.outputTokens = std::max(request.outputTokens, event.tokens);
        break;
    case RequestChange::Resumed:
        break;
    case RequestChange::Finished:
    case RequestChange::Cancelled:
    case RequestChange::Refused:
        request.end = event.time;
        request.outputTokens = std::max(request.outputTokens, event.tokens);
        request.reason = textOf(timeline.text(event.reason.value));
        break;
    }
}

void takeRequests(BatchSide& side, const profiler::RunTimeline& timeline) {
    for (base::RequestEvent event : timeline.requests().events()) {
        if (!numbered(event.request, kMostRequests)) {
            continue;
        }
        event.time -= side.origin;
        const auto at = static_cast<std::size_t>(event.request);
        // Numbers count from 0 without gaps; a hole would be a lost event, and many of them a damaged file.
        if (at >= side.requests.size()) {
            if (at > side.requests.size() + timeline.requests().events().size()) {
                continue;
            }
            const std::size_t known = side.requests.size();
            side.requests.resize(at + 1);
            for (std::size_t i = known; i <= at; ++i) {
                side.requests[i].number = static_cast<std::int32_t>(i);
                side.requests[i].arrived = event.time;
            }
        }
        takeBorder(side.requests[at], event, timeline);
        side.end = std::max(side.end, event.time);
        side.borders.push_back(event);
    }
    for (const BatchRequest& request : side.requests) {
        side.preemptions += request.preemptions;
        side.finished += request.finished() ? 1 : 0;
        side.refused += request.phase == RequestChange::Refused ? 1 : 0;
        side.cancelled += request.phase == RequestChange::Cancelled ? 1 : 0;
        const auto add = [](std::vector<double>& values, std::optional<double> value) {
            if (value) {
                values.push_back(*value);
            }
        };
        add(side.latencies.ttft, request.ttft());
        add(side.latencies.tpot, request.tpot());
        add(side.latencies.endToEnd, request.endToEnd());
    }
    for (auto* values : {&side.latencies.ttft, &side.latencies.tpot, &side.latencies.endToEnd}) {
        std::sort(values->begin(), values->end());
    }
}

/// Of slots that nobody runs in: the end of who ran in them last, then nothing.
void addOpenEnds(BatchSide& side, std::vector<base::TimeNs>& covered, std::vector<std::int64_t>& steps) {
    const base::BatchStepEvent last = side.steps.back();
    const auto stepAfter = [&](base::TimeNs time) {
        const base::BatchStepEvent* step = side.stepAt(time - 1);
        return step != nullptr ? step->index + 1 : std::int64_t{0};
    };
    const auto add = [&](std::size_t slot, SlotState state, std::int32_t request, base::TimeNs end, std::int64_t step) {
        base::SlotSpanEvent span;
        span.begin = std::max(covered[slot], side.steps.front().begin);
        span.end = end;
        span.firstStep = steps[slot];
        span.steps = step - span.firstStep;
        span.slot = static_cast<std::int32_t>(slot);
        span.state = state;
        span.request = request;
        if (span.end > span.begin && span.steps > 0) {
            side.spans.push_back(span);
            covered[slot] = end;
            steps[slot] = step;
        }
    };
    for (const BatchRequest& request : side.requests) {
        const bool ended = request.phase == RequestChange::Finished || request.phase == RequestChange::Cancelled;
        if (ended && numbered(request.slot, side.slotCount) &&
            request.end > covered[static_cast<std::size_t>(request.slot)]) {
            add(static_cast<std::size_t>(request.slot),
                request.firstToken >= 0 ? SlotState::Decode : SlotState::Prefill, request.number,
                std::min(request.end, last.end), stepAfter(std::min(request.end, last.end)));
        }
    }
    if (side.mode == QLatin1String("static") && last.running > 0) {
        return; // ended requests of the batch step on as padding, which is reported later
    }
    for (std::size_t slot = 0; slot < covered.size(); ++slot) {
        add(slot, SlotState::Idle, -1, last.end, last.index + 1);
    }
}

/// A slot's stretch is reported when it ends: what is under way is known from its request.
void addOpenSpans(BatchSide& side) {
    if (!side.live || side.steps.empty()) {
        return;
    }
    std::vector<base::TimeNs> covered(static_cast<std::size_t>(side.slotCount), 0);
    std::vector<std::int64_t> steps(static_cast<std::size_t>(side.slotCount), 0);
    for (const base::SlotSpanEvent& span : side.spans) {
        const auto slot = static_cast<std::size_t>(span.slot);
        covered[slot] = std::max(covered[slot], span.end);
        steps[slot] = std::max(steps[slot], span.firstStep + span.steps);
    }
    const base::BatchStepEvent last = side.steps.back();
    for (const BatchRequest& request : side.requests) {
        const bool runs = request.phase == RequestChange::Admitted || request.phase == RequestChange::FirstToken ||
                          request.phase == RequestChange::Resumed;
        if (!runs || !numbered(request.slot, side.slotCount)) {
            continue;
        }
        const auto slot = static_cast<std::size_t>(request.slot);
        base::SlotSpanEvent open;
        open.begin = std::max(covered[slot], request.admitted);
        open.end = last.end;
        open.firstStep = std::max<std::int64_t>(steps[slot], 0);
        open.steps = last.index + 1 - open.firstStep;
        open.slot = request.slot;
        open.request = request.number;
        open.state = request.firstToken >= 0 ? SlotState::Decode : SlotState::Prefill;
        if (open.end > open.begin && open.steps > 0) {
            side.spans.push_back(open);
            covered[slot] = open.end;
            steps[slot] = last.index + 1;
        }
    }
    addOpenEnds(side, covered, steps);
}

void takeSpans(BatchSide& side, const profiler::RunTimeline& timeline) {
    for (base::SlotSpanEvent span : timeline.requests().slotSpans()) {
        if (!numbered(span.slot, kMostSlots)) {
            continue;
        }
        span.begin -= side.origin;
        span.end = std::max(span.begin, span.end - side.origin);
        side.slotCount = std::max(side.slotCount, span.slot + 1);
        side.end = std::max(side.end, span.end);
        side.spans.push_back(span);
    }
    for (const BatchRequest& request : side.requests) {
        side.slotCount = std::max(side.slotCount, std::min(request.slot, kMostSlots - 1) + 1);
    }
    addOpenSpans(side);
    std::stable_sort(side.spans.begin(), side.spans.end(), [](const auto& a, const auto& b) {
        return a.slot != b.slot ? a.slot < b.slot : a.begin < b.begin;
    });
    side.slotBegins.assign(static_cast<std::size_t>(side.slotCount) + 1, 0);
    for (const base::SlotSpanEvent& span : side.spans) {
        ++side.slotBegins[static_cast<std::size_t>(span.slot) + 1];
    }
    for (std::size_t i = 1; i < side.slotBegins.size(); ++i) {
        side.slotBegins[i] += side.slotBegins[i - 1];
    }
}

/// What a request does from each border on, until a slot says it more exactly.
std::optional<RequestState> waitingAfter(RequestChange phase) {
    switch (phase) {
    case RequestChange::Arrived:
        return RequestState::Queued;
    case RequestChange::Preempted:
        return RequestState::Preempted;
    default:
        return std::nullopt;
    }
}

void makePieces(BatchSide& side) {
    struct Numbered {
        std::int32_t request;
        RequestPiece piece;
    };
    std::vector<Numbered> all;
    all.reserve(side.spans.size() + side.borders.size());
    std::vector<std::pair<base::TimeNs, std::optional<RequestState>>> waits(side.requests.size(), {0, std::nullopt});
    for (const base::RequestEvent& event : side.borders) {
        auto& [since, state] = waits[static_cast<std::size_t>(event.request)];
        if (state && event.time > since) {
            all.push_back({event.request, {since, event.time, *state}});
        }
        since = event.time;
        state = waitingAfter(event.phase);
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits[i].second && side.end > waits[i].first) {
            all.push_back({static_cast<std::int32_t>(i), {waits[i].first, side.end, *waits[i].second}});
        }
    }
    for (const base::SlotSpanEvent& span : side.spans) {
        const std::optional<RequestState> state =
            span.state == SlotState::Prefill   ? std::optional(RequestState::Prefill)
            : span.state == SlotState::Decode  ? std::optional(RequestState::Decode)
            : span.state == SlotState::Padding ? std::optional(RequestState::Padding)
                                               : std::nullopt;
        if (state && numbered(span.request, static_cast<std::int32_t>(side.requests.size()))) {
            all.push_back({span.request, {span.begin, span.end, *state}});
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const Numbered& a, const Numbered& b) {
        return a.request != b.request ? a.request < b.request : a.piece.begin < b.piece.begin;
    });
    side.pieceBegins.assign(side.requests.size() + 1, 0);
    side.pieces.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& [request, piece] = all[i];
        const bool follows = i > 0 && all[i - 1].request == request && all[i - 1].piece.state != RequestState::Queued;
        if (follows && piece.begin > all[i - 1].piece.end) { // in a slot, while steps went by without it
            side.pieces.push_back({all[i - 1].piece.end, piece.begin, RequestState::Idle});
            ++side.pieceBegins[static_cast<std::size_t>(request) + 1];
        }
        side.pieces.push_back(piece);
        ++side.pieceBegins[static_cast<std::size_t>(request) + 1];
    }
    for (std::size_t i = 1; i < side.pieceBegins.size(); ++i) {
        side.pieceBegins[i] += side.pieceBegins[i - 1];
    }
}

QString titleOf(const QString& mode) {
    return mode == QLatin1String("static")       ? QObject::tr("Static")
           : mode == QLatin1String("continuous") ? QObject::tr("Continuous")
           : mode.isEmpty()                      ? QObject::tr("Batch")
                                                 : mode;
}

/// The longest that fits the head of a column beside its badge.
QString headOf(const QString& mode) {
    return mode == QLatin1String("continuous") ? QObject::tr("contin.") : titleOf(mode).toLower();
}

/// Both titles name the mode and what differs besides it.
void nameSides(BatchPair& pair) {
    const std::array<const BatchSide*, 2> sides{pair.a.get(), pair.b.get()};
    for (std::size_t i = 0; i < sides.size(); ++i) {
        if (sides[i] == nullptr) {
            continue;
        }
        pair.heads[i] = headOf(sides[i]->mode);
        QStringList title{titleOf(sides[i]->mode)};
        const BatchSide* other = sides[1 - i];
        const bool sameMode = other != nullptr && other->mode == sides[i]->mode;
        for (const char* key : batchSettingKeys()) {
            const auto mine = sides[i]->settings.find(key);
            if (other == nullptr || std::string_view(key) == "mode" || mine == sides[i]->settings.end()) {
                continue;
            }
            const auto others = other->settings.find(key);
            if (others != other->settings.end() && others->second == mine->second) {
                continue;
            }
            if (sameMode && title.size() == 1) {
                pair.heads[i] = textOf(mine->second);
            }
            title << batchSettingText(key, mine->second);
        }
        pair.titles[i] = title.join(QStringLiteral(", "));
    }
}

/// Number and hash of each request's tokens in their order.
std::vector<std::pair<std::uint64_t, std::uint64_t>> tokenHashes(const profiler::RunTimeline& timeline,
                                                                 std::size_t requests) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> hashes(requests, {0, 14695981039346656037ULL});
    for (const base::TokenEvent& token : timeline.tokens().all()) {
        if (token.request >= 0 && static_cast<std::size_t>(token.request) < requests) {
            auto& [count, hash] = hashes[static_cast<std::size_t>(token.request)];
            ++count;
            hash = (hash ^ static_cast<std::uint32_t>(token.token)) * 1099511628211ULL;
        }
    }
    return hashes;
}

} // namespace

std::optional<double> BatchRequest::ttft() const {
    return firstToken >= 0 ? std::optional(secondsOf(firstToken - arrived)) : std::nullopt;
}

std::optional<double> BatchRequest::tpot() const {
    return finished() && firstToken >= 0 && outputTokens > 1
               ? std::optional(secondsOf(end - firstToken) / static_cast<double>(outputTokens - 1))
               : std::nullopt;
}

std::optional<double> BatchRequest::endToEnd() const {
    return finished() ? std::optional(secondsOf(end - arrived)) : std::nullopt;
}

double BatchSide::tokensPerSecond() const {
    const double took = secondsOf(beginsLater() ? end + origin : end);
    return took > 0 ? static_cast<double>(generated) / took : 0;
}

double BatchSide::utilization() const {
    const double cells = static_cast<double>(slotCount) * static_cast<double>(decodeSteps);
    return cells > 0 ? static_cast<double>(generated) / cells : 0;
}

const base::BatchStepEvent* BatchSide::stepAt(base::TimeNs time) const {
    const auto after = std::upper_bound(steps.begin(), steps.end(), time,
                                        [](base::TimeNs t, const base::BatchStepEvent& s) { return t < s.begin; });
    return after == steps.begin() ? nullptr : &*(after - 1);
}

const BatchRequest* BatchSide::request(std::int32_t number) const {
    return number >= 0 && static_cast<std::size_t>(number) < requests.size()
               ? &requests[static_cast<std::size_t>(number)]
               : nullptr;
}

BatchSidePtr batchSide(const sessions::RunInfo& run, const profiler::RunTimeline& timeline) {
    auto side = std::make_shared<BatchSide>();
    side->run = run.id;
    const auto experiment = engine::Experiment::read(run.specJson);
    const nlohmann::json metrics = base::parsedObject(run.metricsJson);
    side->mode = textOf(engine::textOf(metrics, engine::result::kMode));
    side->mode = side->mode.isEmpty() ? textOf(experiment ? experiment->text("mode") : std::string()) : side->mode;
    side->settings = batchSettings(run);
    const double slotCount = engine::numberOf(metrics, engine::result::kSlots)
                                 .value_or(experiment ? static_cast<double>(experiment->integer("slots")) : 0);
    side->slotCount = slotCount >= 1 && slotCount < kMostSlots ? static_cast<std::int32_t>(slotCount) : 0;
    side->live = run.status == sessions::RunStatus::Running;
    side->stopped = !side->live && run.status != sessions::RunStatus::Done;
    side->virtualTime = runSummary(run).virtualTime;
    const auto steps = timeline.requests().steps();
    const auto requests = timeline.requests().events();
    side->origin = steps.empty() ? 0 : steps.front().begin;
    if (!requests.empty()) {
        side->origin = steps.empty() ? requests.front().time : std::min(side->origin, requests.front().time);
    }
    takeSteps(*side, timeline);
    takeRequests(*side, timeline);
    takeSpans(*side, timeline);
    makePieces(*side);
    return side;
}

BatchPair batchPair(BatchSidePtr a, BatchSidePtr b, const profiler::RunTimeline* timelineA,
                    const profiler::RunTimeline* timelineB) {
    BatchPair pair{std::move(a), std::move(b), std::nullopt, 0, {}, {}};
    nameSides(pair);
    if (!pair.a || !pair.b || timelineA == nullptr || timelineB == nullptr) {
        return pair;
    }
    const std::size_t count = std::min(pair.a->requests.size(), pair.b->requests.size());
    const auto tokensA = tokenHashes(*timelineA, count), tokensB = tokenHashes(*timelineB, count);
    for (std::size_t i = 0; i < count; ++i) {
        if (!pair.a->requests[i].finished() || !pair.b->requests[i].finished()) {
            continue;
        }
        ++pair.finishedInBoth;
        if (tokensA[i].first > 0 || tokensB[i].first > 0) {
            pair.sameTokens = pair.sameTokens.value_or(true) && tokensA[i] == tokensB[i];
        }
    }
    return pair;
}

} // namespace vitrine::ui
