// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kernels/kernel_variants.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "kernels/cuda/jit/kernel_pack.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

using Json = nlohmann::json;

namespace {

constexpr double kNoise = 0.02; ///< repeats of a run differ by about as much
constexpr std::array kSimdLevels = {"scalar", "avx2", "avx512"};
const QString kCpuFamily = QStringLiteral("CPU kernels");

std::uint64_t countAt(const Json& object, const engine::ResultField& field) {
    return engine::countOf(object, field).value_or(0);
}

std::vector<UsedVariant> usedVariants(const Json& metrics) {
    std::vector<UsedVariant> used;
    for (const Json& row : engine::rowsOf(metrics, engine::result::kKernels)) {
        if (!row.is_object()) {
            continue;
        }
        UsedVariant variant{textOf(engine::textOf(row, engine::result::kFamily)),
                            textOf(engine::textOf(row, engine::result::kVariant)),
                            textOf(engine::textOf(row, engine::result::kPack)),
                            textOf(engine::textOf(row, engine::result::kArch)),
                            {},
                            {}};
        const VariantUse use{textOf(engine::textOf(row, engine::result::kSpecialization)),
                             textOf(engine::textOf(row, engine::result::kOrigin)),
                             textOf(engine::textOf(row, engine::result::kReason)),
                             countAt(row, engine::result::kCalls),
                             static_cast<int>(engine::numberOf(row, engine::result::kRegisters).value_or(0)),
                             static_cast<int>(engine::numberOf(row, engine::result::kSpillBytes).value_or(0)),
                             countAt(row, engine::result::kSharedBytes),
                             countAt(row, engine::result::kCubinBytes)};
        for (const Json& entry : engine::rowsOf(row, engine::result::kEntries)) {
            variant.entries.push_back(entry.is_string() ? entry.get<std::string>() : std::string());
        }
        const auto same = std::ranges::find_if(used, [&variant](const UsedVariant& other) {
            return other.family == variant.family && other.name() == variant.name();
        });
        if (same != used.end()) {
            same->uses.push_back(use);
        } else {
            variant.uses.push_back(use);
            used.push_back(std::move(variant));
        }
    }
    return used;
}

/// Every variant of a pack that could run on the run's device, and the names of the kernels of those in use.
void addFromPack(VariantList& list, const kernels::KernelPack& pack) {
    const std::string arch = list.used.front().arch.toStdString();
    for (const kernels::KernelVariant& variant : pack.variants()) {
        const QString family = QString::fromStdString(variant.family);
        const QString name = QString::fromStdString(pack.name() + "/" + variant.name);
        bool inUse = false;
        for (UsedVariant& used : list.used) {
            if (used.family == family && used.name() == name) {
                inUse = true;
                used.entries.clear();
                for (const kernels::KernelLaunchRule& launch : variant.launches) {
                    used.entries.push_back(launch.entry);
                }
            }
        }
        const bool runs = std::ranges::any_of(
            variant.archs, [&arch](const std::string& listed) { return kernels::archRuns(listed, arch); });
        if (runs) {
            list.candidates.push_back({family, name, inUse});
        }
    }
}

void addFromPacks(VariantList& list, const std::vector<std::string>& folders) {
    if (list.used.empty()) {
        return;
    }
    try {
        kernels::archNumber(list.used.front().arch.toStdString());
    } catch (const base::Error& error) {
        list.note = QString::fromUtf8(error.what()); // nothing can be chosen for a device that nobody knows
        return;
    }
    for (const std::string& folder : folders) {
        try {
            addFromPack(list, kernels::KernelPack::load(folder));
        } catch (const base::Error& error) {
            list.note = QString::fromUtf8(error.what()); // a folder that is gone leaves its variants out
        }
    }
    addFromPack(list, kernels::KernelPack::builtin());
}

/// The widest instructions that the processor had, and the narrower ones.
void addSimd(VariantList& list, const std::string& simdAsked, const Json& environment) {
    const QString simd = textOf(base::textAt(environment, "simd")).section(QLatin1Char('-'), -1);
    if (simd.isEmpty() || base::textAt(environment, "backend") != "cpu") {
        return;
    }
    list.cpu = true;
    const QString asked = textOf(simdAsked);
    const bool chosen = asked.isEmpty() || asked == QLatin1String("auto");
    VariantUse use;
    use.reason = chosen ? QObject::tr("the widest that the processor has") : QObject::tr("named by --simd");
    use.origin = QObject::tr("part of the program");
    list.used.push_back(
        {kCpuFamily, simd, QStringLiteral("builtin"), textOf(base::textAt(environment, "cpu")), {use}, {}});
    // What is wider than the run used may not be there; `auto` used the widest.
    for (const char* level : kSimdLevels) {
        const QString name = QString::fromLatin1(level);
        list.candidates.push_back({kCpuFamily, name, name == simd});
        if (chosen && name == simd) {
            break;
        }
    }
}

QString bytesOrUnknown(std::uint64_t bytes) {
    return bytes > 0 ? bytesText(bytes) : unknownText();
}

FlatCell numberCell(const QString& text, double value, bool known = true) {
    FlatCell cell(known ? text : unknownText(), known ? value : -1.0, QString::number(value, 'g', 12));
    cell.muted = !known;
    return cell;
}

FlatCell timeCell(std::optional<base::TimeNs> time) {
    return numberCell(time ? durationText(*time) : QString(), static_cast<double>(time.value_or(0)), time.has_value());
}

FlatCell deltaCell(std::optional<base::TimeNs> a, std::optional<base::TimeNs> b) {
    if (!a || !b || *a <= 0 || *b <= 0) {
        return numberCell({}, 0, false);
    }
    const double ratio = static_cast<double>(*b) / static_cast<double>(*a);
    FlatCell cell(QString(), ratio);
    cell.delta = ratio > 1 + kNoise ? 1 : ratio < 1 / (1 + kNoise) ? -1 : 0;
    cell.text = *cell.delta == 0  ? QStringLiteral("=")
                : *cell.delta > 0 ? QStringLiteral("▲ ") + ratioText(ratio)
                                  : QStringLiteral("▼ ") + ratioText(1 / ratio);
    cell.tip = *cell.delta > 0   ? QObject::tr("B takes longer")
               : *cell.delta < 0 ? QObject::tr("B is quicker")
                                 : QObject::tr("within two percent: as much as runs differ");
    return cell;
}

void fillFacts(std::vector<FlatCell>& cells, const VariantUse& use, bool cpu) {
    cells[VariantReason] = FlatCell(use.reason);
    cells[VariantReason].muted = true;
    cells[VariantReason].tip = use.reason;
    cells[VariantRegisters] = numberCell(QString::number(use.registers), use.registers, !cpu);
    cells[VariantShared] = numberCell(use.sharedBytes > 0 ? bytesText(use.sharedBytes) : QStringLiteral("0"),
                                      static_cast<double>(use.sharedBytes), !cpu);
    cells[VariantSpills] =
        numberCell(use.spillBytes > 0 ? bytesText(static_cast<std::uint64_t>(use.spillBytes)) : QStringLiteral("0"),
                   use.spillBytes, !cpu);
    cells[VariantCubin] =
        numberCell(bytesOrUnknown(use.cubinBytes), static_cast<double>(use.cubinBytes), use.cubinBytes > 0);
    cells[VariantOrigin] = FlatCell(use.origin);
    cells[VariantOrigin].muted = true;
    cells[VariantCalls] =
        numberCell(countText(static_cast<std::int64_t>(use.calls)), static_cast<double>(use.calls), !cpu);
}

/// B's variants of a family, and what they took together.
std::pair<QString, std::optional<base::TimeNs>> otherSide(const QString& family, const VariantSide& b) {
    QStringList names;
    std::optional<base::TimeNs> time;
    for (const UsedVariant& variant : b.list->used) {
        if (variant.family == family) {
            names << variant.name();
            if (const auto own = b.stats ? variantTime(variant, *b.stats) : std::nullopt) {
                time = time.value_or(0) + *own;
            }
        }
    }
    return {names.join(QStringLiteral(", ")), time};
}

} // namespace

VariantUse UsedVariant::heaviest() const {
    VariantUse most;
    for (const VariantUse& use : uses) {
        most.calls += use.calls;
        most.registers = std::max(most.registers, use.registers);
        most.spillBytes = std::max(most.spillBytes, use.spillBytes);
        most.sharedBytes = std::max(most.sharedBytes, use.sharedBytes);
        most.cubinBytes = std::max(most.cubinBytes, use.cubinBytes);
    }
    most.reason = uses.empty() ? QString() : uses.front().reason;
    if (uses.size() == 1) {
        most.origin = uses.front().origin;
        most.specialization = uses.front().specialization;
    } else if (!uses.empty()) {
        const auto compiled = std::ranges::count_if(
            uses, [](const VariantUse& use) { return use.origin.startsWith(QLatin1String("compiled")); });
        most.origin =
            compiled == 0 ? uses.front().origin : QObject::tr("%1 of %2 compiled").arg(compiled).arg(uses.size());
    }
    return most;
}

const UsedVariant* VariantList::withEntry(const std::string& kernel) const {
    const auto found = std::ranges::find_if(
        used, [&kernel](const UsedVariant& v) { return std::ranges::find(v.entries, kernel) != v.entries.end(); });
    return found == used.end() ? nullptr : &*found;
}

std::vector<Candidate> VariantList::of(const QString& family) const {
    std::vector<Candidate> found;
    std::ranges::copy_if(candidates, std::back_inserter(found),
                         [&family](const Candidate& candidate) { return candidate.family == family; });
    return found;
}

VariantListPtr variantList(const sessions::RunInfo& run) {
    auto list = std::make_shared<VariantList>();
    const auto experiment = engine::Experiment::read(run.specJson);
    list->used = usedVariants(base::parsedObject(run.metricsJson));
    addFromPacks(*list, experiment ? experiment->texts("kernel_pack") : std::vector<std::string>());
    if (list->used.empty()) {
        addSimd(*list, experiment ? experiment->text("simd") : std::string(), base::parsedObject(run.environmentJson));
    }
    return list;
}

std::optional<base::TimeNs> variantTime(const UsedVariant& variant, const KernelStats& stats) {
    std::optional<base::TimeNs> time;
    if (variant.family == kCpuFamily && stats.ops > 0) {
        return stats.ops;
    }
    for (const profiler::KernelRow& row : stats.table.kernels) {
        if (std::ranges::find(variant.entries, row.name) != variant.entries.end()) {
            time = time.value_or(0) + row.total;
        }
    }
    return time;
}

std::string variantExperiment(const sessions::RunInfo& run, const Candidate& candidate) {
    auto experiment = engine::Experiment::read(run.specJson);
    if (!experiment) {
        return {};
    }
    experiment->set("profile", std::string("full")); // without it neither kernels nor ops are recorded
    if (candidate.family == kCpuFamily) {
        experiment->set("simd", candidate.name.toStdString());
        return experiment->jsonText();
    }
    const std::string prefix = candidate.family.toStdString() + "=";
    std::vector<std::string> overrides = experiment->texts("kernel");
    std::erase_if(overrides, [&](const std::string& item) { return item.starts_with(prefix); });
    overrides.push_back(prefix + candidate.name.toStdString());
    experiment->set("kernel", overrides);
    return experiment->jsonText();
}

FlatTreePtr variantTree(const VariantSide& a, const std::optional<VariantSide>& b) {
    auto tree = std::make_shared<FlatTree>();
    const auto tr = [](const char* text) { return QObject::tr(text); };
    tree->columns = {{tr("Op"), false},       {tr("Variant"), false}, {tr("Pack"), false},  {tr("Why"), false},
                     {tr("Registers"), true}, {tr("Shared"), true},   {tr("Spills"), true}, {tr("Cubin"), true},
                     {tr("Origin"), false},   {tr("Calls"), true},    {tr("Time"), true}};
    if (b) {
        tree->columns.insert(tree->columns.end(),
                             {{tr("Variant in B"), false}, {tr("Time in B"), true}, {tr("A to B"), true}});
    }
    const std::size_t columns = tree->columns.size();
    for (std::size_t i = 0; i < a.list->used.size(); ++i) {
        const UsedVariant& variant = a.list->used[i];
        FlatNode node;
        node.key = i + 1;
        node.cells.resize(columns);
        node.cells[VariantOp] = FlatCell(variant.family);
        node.cells[VariantName] = FlatCell(variant.variant);
        node.cells[VariantPack] = FlatCell(variant.pack);
        fillFacts(node.cells, variant.heaviest(), a.list->cpu);
        const auto time = a.stats ? variantTime(variant, *a.stats) : std::nullopt;
        node.cells[VariantTime] = timeCell(time);
        if (b) {
            const auto [name, other] = otherSide(variant.family, *b);
            node.cells[VariantOther] = FlatCell(name.isEmpty() ? unknownText() : name);
            node.cells[VariantOther].muted = name == variant.name() || name.isEmpty();
            node.cells[VariantOtherTime] = timeCell(other);
            node.cells[VariantDelta] = deltaCell(time, other);
            node.emphasis = !name.isEmpty() && name != variant.name();
        }
        const auto parent = static_cast<std::int32_t>(tree->nodes.size());
        tree->nodes.push_back(std::move(node));
        for (std::size_t k = 0; variant.uses.size() > 1 && k < variant.uses.size(); ++k) {
            FlatNode use;
            use.parent = parent;
            use.key = (k + 1) << 32 | (i + 1);
            use.cells.resize(columns);
            use.cells[VariantOp] = FlatCell(variant.uses[k].specialization);
            use.cells[VariantOp].muted = true;
            use.cells[VariantOp].tip = variant.uses[k].specialization;
            fillFacts(use.cells, variant.uses[k], a.list->cpu);
            tree->nodes.push_back(std::move(use));
        }
    }
    return tree;
}

} // namespace vitrine::ui
