// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/batch_tables.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/load/load_tables.h"

namespace vitrine::ui {

namespace {

using Value = std::optional<double>;

template <class F> Value of(const BatchSidePtr& side, F value) {
    return side ? Value(value(*side)) : std::nullopt;
}

QString plain(double value, int decimals) {
    return decimals == 0 || std::abs(value) >= 1000 ? countText(std::llround(value))
                                                    : QString::number(value, 'f', decimals);
}

FlatCell valueCell(Value value, int decimals) {
    return value ? FlatCell(plain(*value, decimals), QVariant(*value), QString::number(*value, 'g', 12))
                 : FlatCell(unknownText(), QVariant(-1.0));
}

/// Name, A, B, A to B; a run that stands alone has a column of its own only.
class RatioTable {
public:
    RatioTable(const QString& title, const BatchPair& pair) : both_(pair.a && pair.b), onlyB_(!pair.a) {
        table_->columns = {{title}};
        for (std::size_t i = 0; i < 2; ++i) {
            if (i == 0 ? pair.a != nullptr : pair.b != nullptr) {
                table_->columns.push_back({pair.heads[i], true});
            }
        }
        if (both_) {
            table_->columns.push_back({QObject::tr("A to B"), true});
        }
    }
    /// Ratios that would be printed as 1.00 are none.
    void row(const QString& name, Value a, Value b, int decimals, std::optional<bool> lowerIsBetter,
             const QString& tip = {}) {
        if (!a && !b) {
            return;
        }
        constexpr double kNoise = 0.005;
        FlatNode node;
        node.key = table_->nodes.size() + 1;
        node.cells = {FlatCell(name)};
        node.cells.front().tip = tip;
        if (both_) {
            node.cells.insert(node.cells.end(),
                              {valueCell(a, decimals), valueCell(b, decimals), ratioCell(a, b, lowerIsBetter, kNoise)});
        } else {
            node.cells.push_back(valueCell(onlyB_ ? b : a, decimals));
        }
        table_->nodes.push_back(std::move(node));
    }
    FlatTreePtr take() { return table_; }

private:
    std::shared_ptr<FlatTree> table_ = std::make_shared<FlatTree>();
    bool both_, onlyB_;
};

QString timeText(base::TimeNs time) {
    return time >= 0 ? instantText(time) : unknownText();
}

QString lengthText(Value seconds) {
    return seconds ? durationText(static_cast<base::TimeNs>(std::llround(*seconds * 1e9))) : unknownText();
}

QString phaseWord(const BatchRequest& request) {
    switch (request.phase) {
    case base::RequestChange::Arrived:
        return QObject::tr("waits");
    case base::RequestChange::Admitted:
    case base::RequestChange::Resumed:
    case base::RequestChange::FirstToken:
        return QObject::tr("runs");
    case base::RequestChange::Preempted:
        return QObject::tr("preempted");
    case base::RequestChange::Cancelled:
        return QObject::tr("cancelled");
    case base::RequestChange::Refused:
        return QObject::tr("refused");
    case base::RequestChange::Finished:
        break;
    }
    return request.reason == QLatin1String("length")       ? QObject::tr("length")
           : request.reason == QLatin1String("stop_token") ? QObject::tr("stop token")
           : request.reason.isEmpty()                      ? QObject::tr("finished")
                                                           : request.reason;
}

FlatCell timeCell(base::TimeNs time) {
    return {timeText(time), QVariant::fromValue<qlonglong>(time), time >= 0 ? QString::number(time) : QString()};
}

FlatCell lengthCell(Value seconds) {
    return {lengthText(seconds), QVariant(seconds.value_or(-1)),
            seconds ? QString::number(*seconds, 'g', 9) : QString()};
}

FlatCell countCell(std::int64_t count) {
    return {countText(count), QVariant::fromValue<qlonglong>(count), QString::number(count)};
}

} // namespace

QString slotStateWord(base::SlotState state) {
    switch (state) {
    case base::SlotState::Prefill:
        return QObject::tr("prefill");
    case base::SlotState::Decode:
        return QObject::tr("decode");
    case base::SlotState::Padding:
        return QObject::tr("padding waste");
    case base::SlotState::Preempted:
        return QObject::tr("preempted");
    case base::SlotState::Idle:
        break;
    }
    return QObject::tr("idle");
}

QString requestText(const BatchRequest& request) {
    QStringList words{QObject::tr("prompt %1, output %2 tokens")
                          .arg(countText(request.promptTokens), countText(request.outputTokens))};
    if (request.phase == base::RequestChange::Refused) {
        words = {request.reason.isEmpty() ? QObject::tr("refused") : QObject::tr("refused: %1").arg(request.reason)};
    }
    if (const Value ttft = request.ttft()) {
        words << QObject::tr("TTFT %1").arg(lengthText(ttft));
    }
    if (const Value tpot = request.tpot()) {
        words << QObject::tr("TPOT %1").arg(lengthText(tpot));
    }
    if (const Value whole = request.endToEnd()) {
        words << QObject::tr("end to end %1").arg(lengthText(whole));
    }
    if (request.preemptions > 0) {
        words << (request.preemptions == 1 ? QObject::tr("preempted once")
                                           : QObject::tr("preempted %1 times").arg(request.preemptions));
    }
    return QObject::tr("Request %1: %2").arg(request.number).arg(words.join(QStringLiteral(", ")));
}

QString sideText(const BatchSide& side) {
    QStringList words{QObject::tr("%1 decode steps").arg(countText(side.decodeSteps)),
                      QObject::tr("slot utilization %1").arg(shareText(side.utilization()))};
    if (side.preemptions > 0) {
        words << QObject::tr("%1 preempted").arg(countText(side.preemptions));
    }
    if (side.refused > 0) {
        words << QObject::tr("%1 refused").arg(countText(side.refused));
    }
    words << (side.live      ? QObject::tr("at %1").arg(instantText(side.end))
              : side.stopped ? QObject::tr("stopped at %1").arg(durationText(side.end))
                             : QObject::tr("done at %1").arg(durationText(side.end)));
    return words.join(QStringLiteral(", "));
}

BatchText batchText(const BatchPair& pair) {
    const BatchSidePtr one = pair.a ? pair.a : pair.b;
    if (!one) {
        return {};
    }
    if ((!pair.a || !pair.b) && one->generated == 0 && one->refused > 0) {
        const auto refused = std::ranges::find(one->requests, base::RequestChange::Refused, &BatchRequest::phase);
        return {countText(0), QObject::tr("tokens. %1 of %2 requests were refused, request %3 because: %4")
                                  .arg(countText(one->refused), countText(static_cast<qint64>(one->requests.size())))
                                  .arg(refused->number)
                                  .arg(refused->reason)};
    }
    if (!pair.a || !pair.b) {
        return {
            countText(std::llround(one->tokensPerSecond())),
            QObject::tr("tokens a second. %1 of every 100 cells of slots and steps made a token. Choose a run of the "
                        "same trace as %2 to compare.")
                .arg(std::lround(one->utilization() * 100))
                .arg(pair.a ? QStringLiteral("B") : QStringLiteral("A"))};
    }
    const double a = pair.a->tokensPerSecond(), b = pair.b->tokensPerSecond();
    if (a <= 0 || b <= 0) {
        return {unknownText(), QObject::tr("One of the runs has made no tokens.")};
    }
    const double ratio = std::max(a, b) / std::min(a, b);
    if (ratio < 1.005) { // 1.00x would be no gain
        const QString ofA = countText(std::llround(a)), ofB = countText(std::llround(b));
        return {QStringLiteral("="), ofA == ofB ? QObject::tr("A and B make %1 tokens a second.").arg(ofA)
                                                : QObject::tr("A makes %1 tokens a second, B %2.").arg(ofA, ofB)};
    }
    const bool more = a > b;
    const BatchSide& slow = more ? *pair.b : *pair.a;
    QString sentence = more ? QObject::tr("more tokens a second in A.") : QObject::tr("more tokens a second in B.");
    if (slow.mode == QLatin1String("static") && pair.a->slotCount == pair.b->slotCount && slow.utilization() > 0) {
        sentence += QLatin1Char(' ') + QObject::tr("With steps of equal length, slots that never idle would reach %1.")
                                           .arg(ratioText(1 / slow.utilization()));
    }
    return {ratioText(ratio), sentence};
}

QString batchAgreement(const BatchPair& pair) {
    const BatchSidePtr one = pair.a ? pair.a : pair.b;
    if (!one) {
        return {};
    }
    const auto all = static_cast<qint64>(one->requests.size());
    if (!pair.a || !pair.b) {
        return QObject::tr("%1 of %2 finished").arg(countText(one->finished), countText(all));
    }
    QString text = QObject::tr("%1 of %2 finished in both")
                       .arg(countText(pair.finishedInBoth),
                            countText(std::max<qint64>(all, static_cast<qint64>(pair.b->requests.size()))));
    if (pair.sameTokens) {
        text += QStringLiteral("   ") +
                (*pair.sameTokens ? QObject::tr("Same tokens: yes") : QObject::tr("Same tokens: no"));
    }
    return text;
}

FlatTreePtr batchThroughputTable(const BatchPair& pair) {
    RatioTable table(QObject::tr("Throughput"), pair);
    const auto row = [&](const QString& name, int decimals, std::optional<bool> lower, auto value) {
        table.row(name, of(pair.a, value), of(pair.b, value), decimals, lower);
    };
    const double longest = std::max(of(pair.a, [](const BatchSide& s) { return s.seconds(); }).value_or(0),
                                    of(pair.b, [](const BatchSide& s) { return s.seconds(); }).value_or(0));
    const bool part = (pair.a && pair.a->beginsLater()) || (pair.b && pair.b->beginsLater());
    const auto rate = [](const BatchSide& s) { return s.tokensPerSecond(); };
    table.row(QObject::tr("tokens/s"), of(pair.a, rate), of(pair.b, rate), 0, false,
              part
                  ? QObject::tr("Since this part of the session began; times count from its oldest arrival before that")
                  : QString());
    const auto some = [&](std::int64_t BatchSide::* count) {
        return (pair.a && (*pair.a).*count > 0) || (pair.b && (*pair.b).*count > 0);
    };
    if (!pair.a || !pair.b || pair.a->generated != pair.b->generated) {
        row(QObject::tr("generated tokens"), 0, std::nullopt,
            [](const BatchSide& s) { return static_cast<double>(s.generated); });
    }
    row(QObject::tr("decode steps"), 0, true, [](const BatchSide& s) { return static_cast<double>(s.decodeSteps); });
    row(QObject::tr("slot utilization, %"), 1, false, [](const BatchSide& s) { return s.utilization() * 100; });
    if (some(&BatchSide::paddingTokens)) {
        row(QObject::tr("padding tokens"), 0, true,
            [](const BatchSide& s) { return static_cast<double>(s.paddingTokens); });
    }
    if (some(&BatchSide::preemptions)) {
        row(QObject::tr("preemptions"), 0, true, [](const BatchSide& s) { return static_cast<double>(s.preemptions); });
    }
    row(QObject::tr("most KV pages"), 0, true, [](const BatchSide& s) { return static_cast<double>(s.mostPages); });
    const auto any = [&pair](bool BatchSide::* is) { return (pair.a && (*pair.a).*is) || (pair.b && (*pair.b).*is); };
    const double units = longest < 1e-3 ? 1e6 : longest < 1 ? 1e3 : 1;
    const QString unit = longest < 1e-3 ? QStringLiteral("µs")
                         : longest < 1  ? QStringLiteral("ms")
                                        : QStringLiteral("s");
    row((any(&BatchSide::live)      ? QObject::tr("so far, %1")
         : any(&BatchSide::stopped) ? QObject::tr("ended at, %1")
                                    : QObject::tr("finished at, %1"))
            .arg(unit),
        units > 1 ? 1 : 2, true, [units](const BatchSide& s) { return s.seconds() * units; });
    return table.take();
}

FlatTreePtr batchLatencyTable(const BatchPair& pair) {
    RatioTable table(QObject::tr("Latency, ms"), pair);
    struct Kind {
        QString name;
        std::vector<double> BatchLatencies::* values;
        int decimals;
    };
    const Kind kinds[] = {{QObject::tr("TTFT"), &BatchLatencies::ttft, 0},
                          {QObject::tr("TPOT"), &BatchLatencies::tpot, 2},
                          {QObject::tr("end to end"), &BatchLatencies::endToEnd, 0}};
    for (const Kind& kind : kinds) {
        const auto value = [&](const BatchSidePtr& side, int share) -> Value {
            const Value seconds = side ? percentile(side->latencies.*kind.values, share / 100.0) : std::nullopt;
            return seconds ? Value(*seconds * 1e3) : std::nullopt;
        };
        // As many decimals as the smallest can say in three digits, the same in all rows of a kind.
        const double a50 = value(pair.a, 50).value_or(1e9), b50 = value(pair.b, 50).value_or(1e9);
        const double smallest = std::min(a50, b50);
        const int decimals = std::max(kind.decimals, smallest < 10 ? 2 : smallest < 100 ? 1 : 0);
        for (const int share : {50, 90, 95, 99}) {
            table.row(QStringLiteral("%1 p%2").arg(kind.name).arg(share), value(pair.a, share), value(pair.b, share),
                      decimals, true);
        }
    }
    return table.take();
}

FlatTreePtr batchRequestTable(const BatchPair& pair, std::int32_t number) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Request %1").arg(number)}};
    std::vector<const BatchRequest*> found;
    for (std::size_t i = 0; i < 2; ++i) {
        if (const BatchSidePtr& side = i == 0 ? pair.a : pair.b) {
            table->columns.push_back({pair.heads[i], true});
            found.push_back(side->request(number));
        }
    }
    if (std::ranges::all_of(found, [](const BatchRequest* request) { return request == nullptr; })) {
        return nullptr;
    }
    const auto row = [&](const QString& name, auto text) {
        FlatNode node;
        node.key = table->nodes.size() + 1;
        node.cells = {FlatCell(name)};
        for (const BatchRequest* request : found) {
            node.cells.push_back(FlatCell(request != nullptr ? text(*request) : unknownText()));
        }
        table->nodes.push_back(std::move(node));
    };
    row(QObject::tr("prompt tokens"), [](const BatchRequest& r) { return countText(r.promptTokens); });
    row(QObject::tr("output tokens"), [](const BatchRequest& r) { return countText(r.outputTokens); });
    row(QObject::tr("arrived"), [](const BatchRequest& r) { return timeText(r.arrived); });
    row(QObject::tr("waited"),
        [](const BatchRequest& r) { return r.admitted >= 0 ? durationText(r.admitted - r.arrived) : unknownText(); });
    row(QObject::tr("slot"),
        [](const BatchRequest& r) { return r.slot >= 0 ? QString::number(r.slot) : unknownText(); });
    row(QObject::tr("TTFT"), [](const BatchRequest& r) { return lengthText(r.ttft()); });
    row(QObject::tr("TPOT"), [](const BatchRequest& r) { return lengthText(r.tpot()); });
    row(QObject::tr("end to end"), [](const BatchRequest& r) { return lengthText(r.endToEnd()); });
    row(QObject::tr("preempted"), [](const BatchRequest& r) { return QString::number(r.preemptions); });
    row(QObject::tr("ended"), [](const BatchRequest& r) { return r.end >= 0 ? timeText(r.end) : unknownText(); });
    row(QObject::tr("state"), [](const BatchRequest& r) { return phaseWord(r); });
    return table;
}

FlatTreePtr batchSlotTable(const BatchSide& side, std::int32_t slot) {
    if (slot < 0 || slot >= side.slotCount) {
        return nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Slot %1").arg(slot)}, {QObject::tr("steps"), true}, {QObject::tr("tokens"), true}};
    struct Sum {
        std::int64_t steps = 0, tokens = 0;
    };
    std::array<Sum, base::kSlotStateCount> sums{};
    for (std::size_t i = side.slotBegins[static_cast<std::size_t>(slot)];
         i < side.slotBegins[static_cast<std::size_t>(slot) + 1]; ++i) {
        const base::SlotSpanEvent& span = side.spans[i];
        Sum& sum = sums[static_cast<std::size_t>(span.state)];
        sum.steps += span.steps;
        sum.tokens += span.state == base::SlotState::Padding ? span.padding : span.tokens;
        if (span.state == base::SlotState::Prefill) {
            sums[static_cast<std::size_t>(base::SlotState::Padding)].tokens += span.padding;
        }
    }
    for (std::size_t state = 0; state < sums.size(); ++state) {
        FlatNode node;
        node.key = state + 1;
        node.cells = {FlatCell(slotStateWord(static_cast<base::SlotState>(state))), countCell(sums[state].steps),
                      countCell(sums[state].tokens)};
        table->nodes.push_back(std::move(node));
    }
    return table;
}

FlatTreePtr slotTwin(const BatchPair& pair, std::size_t limit) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Run")},
                      {QObject::tr("Slot"), true},
                      {QObject::tr("State")},
                      {QObject::tr("Request"), true},
                      {QObject::tr("From"), true},
                      {QObject::tr("Length"), true},
                      {QObject::tr("First step"), true},
                      {QObject::tr("Steps"), true},
                      {QObject::tr("Tokens"), true},
                      {QObject::tr("Padding"), true}};
    for (const auto& [letter, side] : {std::pair{QLatin1Char('A'), pair.a}, {QLatin1Char('B'), pair.b}}) {
        const std::size_t most = limit / ((pair.a ? 1U : 0U) + (pair.b ? 1U : 0U) + (pair.a || pair.b ? 0U : 1U));
        for (std::size_t i = 0; side && i < std::min(most, side->spans.size()); ++i) {
            const base::SlotSpanEvent& span = side->spans[i];
            FlatNode node;
            node.key = table->nodes.size() + 1;
            node.cells = {FlatCell(QString(letter)),
                          countCell(span.slot),
                          FlatCell(slotStateWord(span.state)),
                          span.request >= 0 ? countCell(span.request) : FlatCell(unknownText(), QVariant(-1)),
                          timeCell(span.begin),
                          lengthCell(static_cast<double>(span.end - span.begin) * 1e-9),
                          countCell(span.firstStep),
                          countCell(span.steps),
                          countCell(span.tokens),
                          countCell(span.padding)};
            table->nodes.push_back(std::move(node));
        }
    }
    return table;
}

FlatTreePtr requestTwin(const BatchPair& pair, std::size_t limit) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Run")},
                      {QObject::tr("Request"), true},
                      {QObject::tr("Arrived"), true},
                      {QObject::tr("Prompt"), true},
                      {QObject::tr("Output"), true},
                      {QObject::tr("Slot"), true},
                      {QObject::tr("Waited"), true},
                      {QObject::tr("TTFT"), true},
                      {QObject::tr("TPOT"), true},
                      {QObject::tr("End to end"), true},
                      {QObject::tr("Preempted"), true},
                      {QObject::tr("State")}};
    for (const auto& [letter, side] : {std::pair{QLatin1Char('A'), pair.a}, {QLatin1Char('B'), pair.b}}) {
        for (std::size_t i = 0; side && i < side->requests.size() && table->nodes.size() < limit; ++i) {
            const BatchRequest& request = side->requests[i];
            FlatNode node;
            node.key = table->nodes.size() + 1;
            node.cells = {FlatCell(QString(letter)),
                          countCell(request.number),
                          timeCell(request.arrived),
                          countCell(request.promptTokens),
                          countCell(request.outputTokens),
                          request.slot >= 0 ? countCell(request.slot) : FlatCell(unknownText(), QVariant(-1)),
                          lengthCell(request.admitted >= 0
                                         ? Value(static_cast<double>(request.admitted - request.arrived) * 1e-9)
                                         : std::nullopt),
                          lengthCell(request.ttft()),
                          lengthCell(request.tpot()),
                          lengthCell(request.endToEnd()),
                          countCell(request.preemptions),
                          FlatCell(phaseWord(request))};
            table->nodes.push_back(std::move(node));
        }
    }
    return table;
}

} // namespace vitrine::ui
