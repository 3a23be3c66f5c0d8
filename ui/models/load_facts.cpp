// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load_facts.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "profiler/analysis/memory_groups.h"
#include "profiler/analysis/scope_places.h"
#include "ui/models/format.h"
#include "ui/models/run_facts.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;
using base::MemoryCategory;

Json parsed(const std::string& text) {
    Json value = Json::parse(text, nullptr, false);
    return value.is_object() ? value : Json::object();
}

QString textAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? QString::fromStdString(found->get<std::string>()) : QString();
}

std::optional<double> numberAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<std::uint64_t> bytesAt(const Json& object, const char* key) {
    const auto value = numberAt(object, key);
    return value && *value >= 0 && *value < 9e18 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

LoadPart partOf(const profiler::AllocationRow& row, std::string_view name) {
    switch (row.category) {
    case MemoryCategory::Untracked:
        return LoadPart::Untracked;
    case MemoryCategory::Workspace:
        return LoadPart::Workspace;
    case MemoryCategory::Weights:
        break;
    default:
        return LoadPart::Other;
    }
    if (name.ends_with("bias")) {
        return LoadPart::Small;
    }
    const std::string part = profiler::weightPart(name, row.dtype);
    return part.starts_with("experts")  ? LoadPart::Experts
           : part.starts_with("embedd") ? LoadPart::Embedding
           : part == "attention"        ? LoadPart::Attention
           : part == "dense MLP"        ? LoadPart::Mlp
                                        : LoadPart::Small;
}

/// One birth or death.
struct Change {
    base::TimeNs time = 0;
    std::int64_t bytes = 0;
    LoadPart part = LoadPart::Other;
    std::size_t category = 0;
};

struct LoadPhase {
    std::uint64_t scope = 0;
    base::TimeNs begin = 0, end = 0;
};

std::vector<LoadPhase> phasesOf(const profiler::MemoryTimeline& timeline) {
    std::vector<LoadPhase> phases;
    for (const profiler::ScopeRow& row : profiler::scopesOfKind(timeline, base::ScopeKind::Phase)) {
        if (timeline.text(row.name) == "load") {
            phases.push_back({row.id, row.begin, row.end < 0 ? timeline.end() : row.end});
        }
    }
    return phases;
}

/// Blocks that the load made, and what the device held before it. A block that outlives the load holds on: the model that
/// the next load replaces is not freed in this picture.
std::vector<Change> changesOf(const profiler::MemoryTimeline& timeline, const LoadPhase& phase) {
    std::vector<Change> changes;
    profiler::ScopePlaces places(timeline);
    for (const profiler::AllocationRow& row : timeline.allocations()) {
        if (row.born > phase.end) {
            break;
        }
        if (row.space != base::MemorySpace::Device) {
            continue;
        }
        const bool made =
            row.scope != 0 && (row.scope == phase.scope || places.of(row.scope).phaseScope == phase.scope);
        const bool before = !made && row.category == MemoryCategory::Untracked && row.born <= phase.begin &&
                            (row.freed < 0 || row.freed > phase.end);
        if (!made && !before) {
            continue;
        }
        const auto bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(row.bytes, INT64_MAX));
        const LoadPart part = partOf(row, timeline.text(row.name));
        const auto category = static_cast<std::size_t>(row.category);
        changes.push_back({before ? 0 : std::max<base::TimeNs>(0, row.born - phase.begin), bytes, part, category});
        const bool stays = row.category == MemoryCategory::Weights ? row.freed >= phase.end : row.freed > phase.end;
        if (row.freed >= 0 && !stays) {
            changes.push_back({std::max<base::TimeNs>(0, row.freed - phase.begin), -bytes, part, category});
        }
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
    return changes;
}

void fillSteps(LoadSide& side, const std::vector<Change>& changes) {
    LoadStep now;
    side.steps.push_back(now);
    for (const Change& change : changes) {
        const auto part = static_cast<std::size_t>(change.part);
        now.time = change.time;
        now.parts[part] += static_cast<std::uint64_t>(change.bytes); // wraps back on deaths
        now.categories[change.category] += static_cast<std::uint64_t>(change.bytes);
        const std::uint64_t total = now.total();
        if (total > side.peak) {
            side.peak = total;
            side.peakTime = now.time;
        }
        side.transient = std::max(side.transient, now.parts[static_cast<std::size_t>(LoadPart::Workspace)]);
        if (side.steps.back().time == now.time && side.steps.back().total() <= total) {
            side.steps.back() = now;
        } else {
            side.steps.push_back(now);
        }
    }
    side.resident = now.parts;
    side.residentCategories = now.categories;
}

Json variantOf(const Json& metrics, std::size_t index) {
    const auto variants = metrics.find("variants");
    if (variants != metrics.end() && variants->is_array() && index < variants->size() &&
        (*variants)[index].is_object()) {
        return (*variants)[index];
    }
    return Json::object();
}

bool sameModel(const sessions::RunInfo& a, const sessions::RunInfo& b) {
    const Json left = parsed(a.specJson), right = parsed(b.specJson);
    return runFacts(a).model == runFacts(b).model && runFacts(a).device == runFacts(b).device &&
           left.value("plan", Json()) == right.value("plan", Json());
}

FlatCell numberCell(std::optional<double> value, int decimals, const QString& tip = {}) {
    if (!value) {
        return {unknownText(), QVariant(-1.0)};
    }
    const QString text =
        decimals == 0 || *value >= 1000 ? countText(std::llround(*value)) : QString::number(*value, 'f', decimals);
    FlatCell cell(text, QVariant(*value), QString::number(*value, 'g', 12));
    cell.tip = tip;
    return cell;
}

/// Bytes in the unit of the table.
struct TableUnit {
    double bytes = 1;
    QString name;
    int decimals = 2;

    static TableUnit forBytes(std::uint64_t largest) {
        if (largest >= (1ULL << 30)) {
            return {static_cast<double>(1ULL << 30), QStringLiteral("GiB"), 2};
        }
        if (largest >= (1ULL << 20)) {
            return {static_cast<double>(1ULL << 20), QStringLiteral("MiB"), 1};
        }
        return {static_cast<double>(1ULL << 10), QStringLiteral("KiB"), 1};
    }
    FlatCell cell(std::optional<std::uint64_t> value) const {
        return value ? numberCell(static_cast<double>(*value) / bytes, decimals, exactBytesText(*value))
                     : FlatCell(unknownText());
    }
};

using OptionalBytes = std::optional<std::uint64_t>;

std::optional<double> asDouble(OptionalBytes value) {
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

class TableMaker {
public:
    explicit TableMaker(const QString& title, const QString& a = {}, const QString& b = {}) {
        table_->columns = {{title}, {a, true}, {b, true}, {QObject::tr("A to B"), true}};
    }
    void bytes(const QString& name, OptionalBytes a, OptionalBytes b, const TableUnit& unit,
               std::optional<bool> lower) {
        row(name, unit.cell(a), unit.cell(b), asDouble(a), asDouble(b), lower);
    }
    void number(const QString& name, std::optional<double> a, std::optional<double> b, int decimals,
                std::optional<bool> lower) {
        row(name, numberCell(a, decimals), numberCell(b, decimals), a, b, lower);
    }
    FlatTreePtr take() { return table_->nodes.empty() ? nullptr : table_; }

private:
    void row(const QString& name, FlatCell left, FlatCell right, std::optional<double> a, std::optional<double> b,
             std::optional<bool> lower) {
        if (!a && !b) {
            return;
        }
        FlatNode node;
        node.key = table_->nodes.size() + 1;
        node.cells = {FlatCell(name), std::move(left), std::move(right), ratioCell(a, b, lower)};
        table_->nodes.push_back(std::move(node));
    }
    std::shared_ptr<FlatTree> table_ = std::make_shared<FlatTree>();
};

QString shortTitle(const std::optional<LoadSide>& side) {
    if (!side) {
        return {};
    }
    return side->weights == QLatin1String("quantized")     ? QObject::tr("quant.")
           : side->weights == QLatin1String("dequantized") ? QObject::tr("dequant.")
                                                           : side->title;
}

template <class F> auto of(const std::optional<LoadSide>& side, F field) -> std::optional<decltype(field(*side))> {
    return side ? std::optional(field(*side)) : std::nullopt;
}

std::uint64_t largestPeak(const LoadPair& pair) {
    return std::max(pair.a ? pair.a->peak : 0, pair.b ? pair.b->peak : 0);
}

std::optional<double> stageRate(const std::optional<LoadSide>& side, const char* name) {
    const profiler::LoadStage* stage = side ? side->stage(name) : nullptr;
    return stage != nullptr && stage->bytesPerSecond > 0 ? std::optional(stage->bytesPerSecond * 1e-9) : std::nullopt;
}

QString times(double ratio) {
    return QString::number(ratio, 'f', ratio >= 100 ? 0 : 2);
}

} // namespace

QString loadPartName(LoadPart part) {
    switch (part) {
    case LoadPart::Untracked:
        return QObject::tr("untracked");
    case LoadPart::Experts:
        return QObject::tr("experts");
    case LoadPart::Embedding:
        return QObject::tr("embedding, lm_head");
    case LoadPart::Attention:
        return QObject::tr("attention");
    case LoadPart::Mlp:
        return QObject::tr("dense MLP");
    case LoadPart::Small:
        return QObject::tr("norms, biases, router");
    case LoadPart::Workspace:
        return QObject::tr("workspace");
    case LoadPart::Other:
        break;
    }
    return QObject::tr("other");
}

StackLayer loadPartLayer(LoadPart part) {
    StackLayer layer;
    layer.name = loadPartName(part);
    layer.category = static_cast<int>(part == LoadPart::Untracked   ? MemoryCategory::Untracked
                                      : part == LoadPart::Workspace ? MemoryCategory::Workspace
                                      : part == LoadPart::Other     ? MemoryCategory::Other
                                                                    : MemoryCategory::Weights);
    layer.tone = part == LoadPart::Embedding   ? 1
                 : part == LoadPart::Attention ? 2
                 : part == LoadPart::Small     ? 3
                 : part == LoadPart::Mlp       ? 4
                                               : 0;
    return layer;
}

std::uint64_t LoadStep::total() const {
    return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

std::uint64_t LoadSide::residentWeights() const {
    return residentCategories[static_cast<std::size_t>(MemoryCategory::Weights)];
}

const LoadStep& LoadSide::at(base::TimeNs time) const {
    static const LoadStep kNothing;
    const auto after = std::upper_bound(steps.begin(), steps.end(), time,
                                        [](base::TimeNs t, const LoadStep& step) { return t < step.time; });
    return after == steps.begin() ? kNothing : *(after - 1);
}

const profiler::LoadStage* LoadSide::stage(const char* name) const {
    const auto found = std::find_if(stages.begin(), stages.end(), [&](const auto& s) { return s.name == name; });
    return found == stages.end() ? nullptr : &*found;
}

std::size_t loadVariants(const sessions::RunInfo& run) {
    const Json metrics = parsed(run.metricsJson);
    const auto variants = metrics.find("variants");
    return variants != metrics.end() && variants->is_array() ? variants->size() : 0;
}

LoadChoice chooseLoads(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b) {
    const auto find = [&](sessions::RunId id) {
        return std::find_if(runs.begin(), runs.end(), [&](const sessions::RunInfo& run) { return run.id == id; });
    };
    const auto left = find(a), right = find(b);
    if (left != runs.end() && loadVariants(*left) >= 2) {
        return {a, a, 0, 1, true};
    }
    if (left != runs.end() && right != runs.end()) {
        return {a, b, 0, 0, false};
    }
    // Without a pair chosen, the latest load of the session that has both.
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        if (loadVariants(*run) >= 2) {
            return {run->id, run->id, 0, 1, true};
        }
    }
    return {left != runs.end() ? a : 0, 0, 0, 0, false};
}

LoadSide loadSide(const sessions::RunInfo& run, const profiler::MemoryTimeline& timeline, std::size_t variant) {
    LoadSide side;
    side.run = run.id;
    const Json metrics = parsed(run.metricsJson), spec = parsed(run.specJson);
    const Json facts = variantOf(metrics, variant);
    const std::vector<LoadPhase> phases = phasesOf(timeline);
    const std::size_t variants = std::max<std::size_t>(1, loadVariants(run));
    side.repeats = static_cast<int>(std::max<std::size_t>(1, phases.size() / variants));
    // Of several repeats the one in the middle of the list stands for the rest.
    const std::size_t index =
        variant * static_cast<std::size_t>(side.repeats) + static_cast<std::size_t>(side.repeats) / 2;
    side.weights = textAt(facts, "weights");
    if (side.weights.isEmpty()) {
        side.weights = textAt(spec, "weights");
    }
    side.title = side.weights == QLatin1String("quantized")     ? QObject::tr("Quantized")
                 : side.weights == QLatin1String("dequantized") ? QObject::tr("Dequantized")
                                                                : QString::fromStdString(run.name);
    side.budget = runFacts(run).budget;
    if (!side.budget) {
        side.budget = bytesAt(metrics, "budget_bytes");
    }
    side.bytesRead = bytesAt(facts, "bytes_read");
    if (!side.bytesRead) {
        side.bytesRead = bytesAt(metrics, "bytes_read");
    }
    if (const auto host = bytesAt(facts, "host_peak_bytes"); host && *host > 0) {
        side.pinned = host;
    }
    if (index >= phases.size()) {
        return side;
    }
    const LoadPhase& phase = phases[index];
    side.length = phase.end - phase.begin;
    side.seconds = numberAt(facts, "seconds").value_or(numberAt(metrics, "load_seconds").value_or(side.length * 1e-9));
    if (side.repeats == 1 && side.seconds > 0) {
        // The phase goes on until the model is bound; loaded is what the report says.
        side.length = std::min(side.length, static_cast<base::TimeNs>(std::llround(std::min(side.seconds, 1e9) * 1e9)));
    }
    fillSteps(side, changesOf(timeline, phase));
    const profiler::LoadStages stages = profiler::loadStages(timeline, index);
    side.stages = stages.stages;
    for (profiler::LoadStage& stage : side.stages) {
        stage.begin -= phase.begin;
        stage.end -= phase.begin;
    }
    for (const base::SpanEvent& span : timeline.spans()) {
        if (span.begin >= phase.begin && (span.begin < phase.end || span.end <= phase.end)) {
            base::SpanEvent moved = span;
            moved.begin -= phase.begin;
            moved.end -= phase.begin;
            side.spans.push_back(moved);
            side.spanLanes.push_back(textOf(timeline.text(span.lane.value)));
        }
    }
    return side;
}

StackModelPtr loadStack(const LoadSide& side, LoadGrouping grouping, const AxisMap& axis, int columns) {
    auto model = std::make_shared<StackModel>();
    if (grouping == LoadGrouping::Part) {
        for (std::size_t part = 0; part < kLoadParts; ++part) {
            model->layers.push_back(loadPartLayer(static_cast<LoadPart>(part)));
        }
    } else {
        for (int category = 0; category < base::kCategoryCount; ++category) {
            model->layers.push_back({textOf(base::categoryName(static_cast<MemoryCategory>(category))), category, 0});
        }
    }
    const double perColumn = axis.width() / std::max(1, columns);
    std::size_t next = 0;
    for (int c = 0; c < columns; ++c) {
        const base::TimeNs begin = axis.time(c * perColumn), end = axis.time((c + 1) * perColumn);
        while (next < side.steps.size() && side.steps[next].time <= begin) {
            ++next;
        }
        const LoadStep* best = next > 0 ? &side.steps[next - 1] : nullptr;
        for (std::size_t i = next; i < side.steps.size() && side.steps[i].time < end; ++i) {
            if (best == nullptr || side.steps[i].total() > best->total()) {
                best = &side.steps[i];
            }
        }
        const LoadStep nothing;
        const LoadStep& step = best != nullptr && end > 0 ? *best : nothing;
        model->columns.push_back({best != nullptr, step.total(), std::max(begin, step.time)});
        if (grouping == LoadGrouping::Part) {
            model->values.insert(model->values.end(), step.parts.begin(), step.parts.end());
        } else {
            model->values.insert(model->values.end(), step.categories.begin(), step.categories.end());
        }
    }
    return model;
}

std::vector<std::optional<double>> loadTotals(const LoadSide& side, const AxisMap& axis, int columns) {
    const StackModelPtr model = loadStack(side, LoadGrouping::Category, axis, columns);
    std::vector<std::optional<double>> totals;
    for (const StackColumn& column : model->columns) {
        totals.push_back(column.present ? std::optional(static_cast<double>(column.total)) : std::nullopt);
    }
    return totals;
}

AfterLoad afterLoad(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& load, const QString& weights) {
    AfterLoad after;
    for (const sessions::RunInfo& run : runs) { // later runs replace earlier ones
        const Json spec = parsed(run.specJson), metrics = parsed(run.metricsJson);
        if (run.status != sessions::RunStatus::Done || textAt(spec, "weights") != weights ||
            textAt(spec, "workload") != QLatin1String("generate") || !sameModel(run, load)) {
            continue;
        }
        const auto decode = numberAt(metrics, "decode_tokens_per_second");
        after.decode = decode && *decode > 0 ? decode : after.decode;
        const auto seconds = numberAt(metrics, "prefill_seconds"), tokens = numberAt(metrics, "prompt_tokens");
        if (seconds && tokens && *seconds > 0 && *tokens > 0) {
            after.prefill = *tokens / *seconds;
            after.promptTokens = std::llround(*tokens);
        }
        const auto context = numberAt(metrics, "max_context");
        after.context = context ? context : after.context;
        const auto ids = metrics.find("ids");
        if (ids != metrics.end() && ids->is_array() && spec.value("temperature", Json(0.0)) == 0.0) {
            after.ids.clear();
            for (const Json& id : *ids) {
                after.ids.push_back(id.is_number_integer() ? id.get<std::int64_t>() : -1);
            }
            after.prompt = spec.value("prompt", Json()).dump() + spec.value("tokens", Json()).dump() +
                           spec.value("chat", Json()).dump() + spec.value("raw", Json()).dump();
        }
    }
    return after;
}

FlatCell ratioCell(std::optional<double> a, std::optional<double> b, std::optional<bool> lowerIsBetter, double noise) {
    if (!a || !b) {
        return {unknownText(), QVariant(0.0)};
    }
    const double largest = std::max(std::abs(*a), std::abs(*b));
    FlatCell cell;
    if (std::abs(*a - *b) <= noise * largest) {
        cell.text = QStringLiteral("=");
        cell.sort = 1.0;
        cell.delta = 0;
        return cell;
    }
    const bool less = *a < *b;
    const double smallest = std::min(std::abs(*a), std::abs(*b));
    const QString arrow = less ? QStringLiteral("▼ ") : QStringLiteral("▲ ");
    cell.text = arrow + (smallest > 0 && *a * *b > 0 ? ratioText(largest / smallest)
                         : *a == 0                   ? QObject::tr("only B")
                         : *b == 0                   ? QObject::tr("only A")
                                                     : unknownText());
    cell.sort = smallest > 0 ? largest / smallest : 1e300;
    cell.delta = !lowerIsBetter ? 2 : less == *lowerIsBetter ? -1 : 1;
    return cell;
}

FlatTreePtr loadTable(const LoadPair& pair) {
    TableMaker table(QObject::tr("Load"), shortTitle(pair.a), shortTitle(pair.b));
    const double longest = std::max(pair.a ? pair.a->seconds : 0, pair.b ? pair.b->seconds : 0);
    const bool millis = longest < 0.1;
    const auto time = [&](const LoadSide& side) { return millis ? side.seconds * 1e3 : side.seconds; };
    table.number(millis ? QObject::tr("time, ms") : QObject::tr("time, s"), of(pair.a, time), of(pair.b, time),
                 millis ? 1 : 2, true);
    const OptionalBytes readA = pair.a ? pair.a->bytesRead : OptionalBytes(),
                        readB = pair.b ? pair.b->bytesRead : OptionalBytes();
    const TableUnit unit = TableUnit::forBytes(std::max(readA.value_or(0), readB.value_or(0)));
    table.bytes(QObject::tr("bytes read, %1").arg(unit.name), readA, readB, unit, true);
    table.number(QObject::tr("read rate, GB/s"), stageRate(pair.a, "Read"), stageRate(pair.b, "Read"), 1, false);
    table.number(QObject::tr("copy rate, GB/s"), stageRate(pair.a, "Copy"), stageRate(pair.b, "Copy"), 1, false);
    table.number(QObject::tr("expand rate, GB/s"), stageRate(pair.a, "Expand"), stageRate(pair.b, "Expand"), 1, false);
    table.number(QObject::tr("fill rate, GB/s"), stageRate(pair.a, "Fill"), stageRate(pair.b, "Fill"), 1, false);
    return table.take();
}

FlatTreePtr loadMemoryTable(const LoadPair& pair) {
    const TableUnit unit = TableUnit::forBytes(largestPeak(pair));
    TableMaker table(QObject::tr("Memory, %1").arg(unit.name), shortTitle(pair.a), shortTitle(pair.b));
    const auto resident = [](const LoadSide& side) { return side.residentWeights(); };
    const auto transient = [](const LoadSide& side) { return side.transient; };
    const auto peak = [](const LoadSide& side) { return side.peak; };
    table.bytes(QObject::tr("resident"), of(pair.a, resident), of(pair.b, resident), unit, true);
    table.bytes(QObject::tr("transient"), of(pair.a, transient), of(pair.b, transient), unit, true);
    table.bytes(QObject::tr("peak"), of(pair.a, peak), of(pair.b, peak), unit, true);
    table.bytes(QObject::tr("pinned host"), pair.a ? pair.a->pinned : OptionalBytes(),
                pair.b ? pair.b->pinned : OptionalBytes(), unit, true);
    const OptionalBytes budget = pair.a && pair.a->budget ? pair.a->budget : pair.b ? pair.b->budget : OptionalBytes();
    if (budget) {
        const auto left = [&](const LoadSide& side) {
            const std::uint64_t held = std::accumulate(side.resident.begin(), side.resident.end(), std::uint64_t{0});
            return *budget > held ? *budget - held : 0;
        };
        table.bytes(QObject::tr("left of %1").arg(bytesText(*budget)), of(pair.a, left), of(pair.b, left), unit, false);
    }
    return table.take();
}

FlatTreePtr afterLoadTable(const AfterLoad& a, const AfterLoad& b) {
    TableMaker table(QObject::tr("After the load"));
    table.number(a.decode16 || b.decode16 ? QObject::tr("decode b1, tok/s") : QObject::tr("decode, tok/s"), a.decode,
                 b.decode, 0, false);
    table.number(QObject::tr("decode b16, tok/s"), a.decode16, b.decode16, 0, false);
    const std::int64_t tokens = a.promptTokens == b.promptTokens ? a.promptTokens : 0;
    table.number(tokens >= 1024 && tokens % 1024 == 0 ? QObject::tr("prefill %1K, tok/s").arg(tokens / 1024)
                                                      : QObject::tr("prefill, tok/s"),
                 a.prefill, b.prefill, 0, false);
    table.number(QObject::tr("context, tokens"), a.context, b.context, 0, false);
    return table.take();
}

FlatTreePtr agreementTable(const AfterLoad& a, const AfterLoad& b) {
    if (a.ids.empty() || b.ids.empty() || a.prompt != b.prompt || a.promptTokens != b.promptTokens) {
        return nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Agreement")}, {QObject::tr("same prompt, greedy"), true}};
    const std::size_t length = std::min(a.ids.size(), b.ids.size());
    std::size_t equal = 0, first = length;
    for (std::size_t i = 0; i < length; ++i) {
        equal += a.ids[i] == b.ids[i] ? 1 : 0;
        first = a.ids[i] != b.ids[i] ? std::min(first, i) : first;
    }
    FlatNode node;
    node.key = 1;
    node.cells = {FlatCell(QObject::tr("tokens equal")),
                  FlatCell(QObject::tr("%1 of %2")
                               .arg(countText(static_cast<qint64>(equal)), countText(static_cast<qint64>(length))))};
    table->nodes.push_back(node);
    if (first < length) {
        node.key = 2;
        node.cells = {FlatCell(QObject::tr("first difference")),
                      FlatCell(QObject::tr("token %1").arg(countText(static_cast<qint64>(first + 1))))};
        table->nodes.push_back(node);
    }
    return table;
}

FlatTreePtr loadTwin(const LoadPair& pair) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {
        {QObject::tr("What")}, {QObject::tr("A"), true}, {QObject::tr("B"), true}, {QObject::tr("A to B"), true}};
    const auto add = [&](const QString& name, OptionalBytes a, OptionalBytes b, const QString& textA,
                         const QString& textB, bool lower) {
        FlatNode node;
        node.key = table->nodes.size() + 1;
        node.cells = {FlatCell(name),
                      {textA, QVariant::fromValue<qulonglong>(a.value_or(0)), QString::number(a.value_or(0))},
                      {textB, QVariant::fromValue<qulonglong>(b.value_or(0)), QString::number(b.value_or(0))},
                      ratioCell(asDouble(a), asDouble(b), lower)};
        table->nodes.push_back(std::move(node));
    };
    for (std::size_t part = 0; part < kLoadParts; ++part) {
        const auto bytes = [&](const LoadSide& side) { return side.resident[part]; };
        const OptionalBytes a = of(pair.a, bytes), b = of(pair.b, bytes);
        if (a.value_or(0) > 0 || b.value_or(0) > 0) {
            add(QObject::tr("resident, %1").arg(loadPartName(static_cast<LoadPart>(part))), a, b, bytesText(a),
                bytesText(b), true);
        }
    }
    const auto peak = [](const LoadSide& side) { return side.peak; };
    add(QObject::tr("peak"), of(pair.a, peak), of(pair.b, peak), bytesText(of(pair.a, peak)),
        bytesText(of(pair.b, peak)), true);
    for (const char* stage : {"Read", "Copy", "Expand", "Fill"}) {
        const auto busy = [&](const std::optional<LoadSide>& side) {
            const profiler::LoadStage* found = side ? side->stage(stage) : nullptr;
            return found != nullptr ? OptionalBytes(static_cast<std::uint64_t>(std::max<base::TimeNs>(0, found->busy)))
                                    : OptionalBytes();
        };
        const OptionalBytes a = busy(pair.a), b = busy(pair.b);
        if (a || b) {
            const auto text = [](OptionalBytes ns) {
                return ns ? durationText(static_cast<base::TimeNs>(*ns)) : unknownText();
            };
            add(QObject::tr("%1, busy").arg(QString::fromLatin1(stage)), a, b, text(a), text(b), true);
        }
    }
    return table;
}

LoadWords loadWords(const LoadPair& pair, const AfterLoad& after, const AfterLoad& afterB) {
    LoadWords words;
    if (!pair.a || !pair.b) {
        if (pair.a) {
            words.number = bytesText(pair.a->residentWeights());
            words.sentence =
                QObject::tr("of weights are resident. Choose a baseline B, or load with both weights, to compare.");
        }
        return words;
    }
    const LoadSide &a = *pair.a, &b = *pair.b;
    const auto bytesA = static_cast<double>(a.residentWeights()), bytesB = static_cast<double>(b.residentWeights());
    if (bytesA <= 0 || bytesB <= 0) {
        words.number = unknownText();
        words.sentence = QObject::tr("One of the loads did not finish.");
        return words;
    }
    const bool less = bytesA <= bytesB;
    const bool kinds = a.weights != b.weights && !a.weights.isEmpty() && !b.weights.isEmpty();
    const LoadSide& small = less ? a : b;
    const LoadSide& large = less ? b : a;
    const double ratio = std::max(bytesA, bytesB) / std::min(bytesA, bytesB);
    const QString who = less ? QStringLiteral("A") : QStringLiteral("B");
    words.number = ratio < 1.0005 ? QStringLiteral("=") : ratioText(ratio);
    if (ratio < 1.0005) {
        words.sentence = QObject::tr("A and B hold the same memory: %1.").arg(bytesText(a.residentWeights()));
    } else if (kinds) {
        words.sentence =
            QObject::tr("less memory when %1: %2 instead of %3.")
                .arg(small.weights, bytesText(small.residentWeights()), bytesText(large.residentWeights()));
    } else {
        words.sentence = QObject::tr("less memory in %1: %2 instead of %3.")
                             .arg(who, bytesText(small.residentWeights()), bytesText(large.residentWeights()));
    }
    QStringList also, costs;
    const auto compare = [&](std::optional<double> mine, std::optional<double> theirs, bool lower,
                             const QString& faster, const QString& slower) {
        if (!mine || !theirs || *mine <= 0 || *theirs <= 0 ||
            std::abs(*mine - *theirs) <= 0.005 * std::max(*mine, *theirs)) {
            return;
        }
        const double factor = std::max(*mine, *theirs) / std::min(*mine, *theirs);
        ((*mine < *theirs) == lower ? also : costs)
            << ((*mine < *theirs) == lower ? faster : slower).arg(times(factor));
    };
    compare(small.seconds, large.seconds, true, QObject::tr("loads %1 times faster"),
            QObject::tr("The load is %1 times slower."));
    const AfterLoad& mine = less ? after : afterB;
    const AfterLoad& theirs = less ? afterB : after;
    compare(mine.decode, theirs.decode, false, QObject::tr("decodes %1 times faster"),
            QObject::tr("Decoding is %1 times slower."));
    compare(mine.prefill, theirs.prefill, false, QObject::tr("prefills %1 times faster"),
            QObject::tr("Prefill is %1 times slower: products multiply from packed weights."));
    if (!also.isEmpty()) {
        const QString last = also.takeLast();
        words.sentence +=
            QLatin1Char(' ') + (also.isEmpty()
                                    ? QObject::tr("It also %1.").arg(last)
                                    : QObject::tr("It also %1 and %2.").arg(also.join(QStringLiteral(", ")), last));
    }
    const bool measured = mine.decode && theirs.decode;
    words.cost =
        !costs.isEmpty() ? costs.join(QLatin1Char(' ')) +
                               (measured ? QObject::tr(" Nothing else that was measured is slower.") : QString())
        : measured
            ? QObject::tr("Nothing that was measured is slower.")
            : QObject::tr("Not measured yet: generate once with each kind of weights to see decode and prefill here.");
    return words;
}

} // namespace vitrine::ui
