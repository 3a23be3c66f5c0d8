// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The tables of step_text.h.
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/step_text.h"
#include "ui/models/finetune/training_text.h"

namespace vitrine::ui {

namespace {

using profiler::PhaseSum;
using profiler::StepAnatomy;

/// Numbers of one table, all in the unit that its head names.
struct ColumnUnit {
    double unit = 1;
    QString name;
    int decimals = 0;

    static ColumnUnit ofBytes(std::uint64_t largest) {
        const ByteGrid grid = byteGrid(largest);
        return {static_cast<double>(grid.unit), QString::fromLatin1(grid.unitName), grid.unit == 1 ? 0 : 2};
    }
    static ColumnUnit ofTime(base::TimeNs longest) {
        return longest >= 1'000'000'000 ? ColumnUnit{1e9, QStringLiteral("s"), 3}
               : longest >= 1'000'000   ? ColumnUnit{1e6, QStringLiteral("ms"), 2}
                                        : ColumnUnit{1e3, QStringLiteral("µs"), 1};
    }

    double rounded(double value) const {
        const double scale = std::pow(10.0, decimals);
        return std::round(value / unit * scale) / scale;
    }
    FlatCell cell(std::optional<double> value, bool muted) const {
        FlatCell out(!value                                ? unknownText()
                     : rounded(*value) == 0 && *value == 0 ? QStringLiteral("0")
                                                           : QString::number(rounded(*value), 'f', decimals),
                     QVariant(value.value_or(-1)), value ? QString::number(*value, 'f', 0) : QString());
        out.muted = muted;
        return out;
    }
    FlatCell delta(std::optional<double> a, std::optional<double> b) const {
        if (!a || !b) {
            FlatCell out(unknownText());
            out.delta = 0;
            return out;
        }
        const double change = rounded(*a) - rounded(*b);
        const double least = 0.5 * std::pow(10.0, -decimals);
        FlatCell out;
        out.sort = std::abs(change);
        out.raw = QString::number(*a - *b, 'f', 0);
        out.delta = std::abs(change) < least ? 0 : change < 0 ? -1 : 1;
        out.text = out.delta == 0 ? QStringLiteral("=")
                                  : (change < 0 ? QStringLiteral("▼ −") : QStringLiteral("▲ +")) +
                                        QString::number(std::abs(change), 'f', decimals);
        return out;
    }
};

class StepTable {
public:
    StepTable(const QString& title, const ColumnUnit& unit, bool both) : unit_(unit), both_(both) {
        const QString head = unit.name.isEmpty() ? title : QObject::tr("%1, %2").arg(title, unit.name);
        tree_->columns = {{head}, {QObject::tr("A"), true}};
        if (both) {
            tree_->columns.push_back({QObject::tr("B"), true});
            tree_->columns.push_back({QObject::tr("A to B"), true});
        }
    }
    FlatNode& add(const QString& name, std::optional<double> a, std::optional<double> b, bool strong = false) {
        FlatNode node;
        node.key = tree_->nodes.size() + 1;
        FlatCell lead(name);
        lead.muted = !strong;
        node.cells = {lead, unit_.cell(a, false)};
        if (both_) {
            node.cells.push_back(unit_.cell(b, !strong));
            node.cells.push_back(unit_.delta(a, b));
        }
        node.emphasis = strong;
        node.last = strong;
        tree_->nodes.push_back(std::move(node));
        return tree_->nodes.back();
    }
    FlatTreePtr finish() const { return tree_; }

private:
    ColumnUnit unit_;
    bool both_;
    std::shared_ptr<FlatTree> tree_ = std::make_shared<FlatTree>();
};

const PhaseSum* sumOf(const std::vector<PhaseSum>& sums, profiler::TrainingPhase kind) {
    const auto found = std::ranges::find(sums, kind, &PhaseSum::kind);
    return found == sums.end() ? nullptr : &*found;
}

/// "forward, 24 layers"
QString sumTitle(const PhaseSum* a, const PhaseSum* b) {
    const PhaseSum& sum = a != nullptr ? *a : *b;
    QString name = textOf(profiler::phaseName(sum.kind));
    using Phase = profiler::TrainingPhase;
    if (!profiler::isOfMicroBatch(sum.kind)) {
        return name;
    }
    if (sum.kind == Phase::Loss) {
        return sum.items == 1 ? QObject::tr("%1, whole").arg(name)
                              : QObject::tr("%1, %2 chunks").arg(name).arg(sum.items);
    }
    return QObject::tr("%1, %2 layers").arg(name).arg(sum.items);
}

/// Calls `add` with the title of each phase and its sums in A and B; one may be null.
template <class Add> void forPhases(const StepPair& pair, const Add& add) {
    const std::vector<PhaseSum> a = pair.a.anatomy.sums();
    const std::vector<PhaseSum> b = pair.b ? pair.b->anatomy.sums() : std::vector<PhaseSum>();
    for (int i = 0; i < profiler::kTrainingPhaseCount; ++i) {
        const auto kind = static_cast<profiler::TrainingPhase>(i);
        const PhaseSum *left = sumOf(a, kind), *right = sumOf(b, kind);
        if (left != nullptr || right != nullptr) {
            add(sumTitle(left, right), left, right);
        }
    }
}

void addFact(FlatTree& tree, const QString& name, const QString& value) {
    FlatNode node;
    node.key = tree.nodes.size() + 1;
    FlatCell lead(name);
    lead.muted = true;
    node.cells = {lead, FlatCell(value)};
    tree.nodes.push_back(std::move(node));
}

std::shared_ptr<FlatTree> facts() {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QString()}, {QString(), true}};
    return tree;
}

std::optional<double> peakOf(const PhaseSum* sum) {
    return sum != nullptr ? std::optional(static_cast<double>(sum->peak.maxTotal)) : std::nullopt;
}

std::optional<double> timeOf(const PhaseSum* sum) {
    return sum != nullptr ? std::optional(static_cast<double>(sum->time)) : std::nullopt;
}

} // namespace

FlatTreePtr phasePeakTable(const StepPair& pair) {
    StepTable table(QObject::tr("Peak of the phase"), ColumnUnit::ofBytes(pair.top()), pair.b.has_value());
    forPhases(pair, [&](const QString& title, const PhaseSum* a, const PhaseSum* b) {
        table.add(title, peakOf(a), peakOf(b));
    });
    return table.finish();
}

FlatTreePtr phaseTimeTable(const StepPair& pair) {
    const base::TimeNs longest = std::max(pair.a.length(), pair.b ? pair.b->length() : 0);
    StepTable table(QObject::tr("Time of the phase"), ColumnUnit::ofTime(longest), pair.b.has_value());
    forPhases(pair, [&](const QString& title, const PhaseSum* a, const PhaseSum* b) {
        table.add(title, timeOf(a), timeOf(b));
    });
    table.add(QObject::tr("step"), static_cast<double>(pair.a.length()),
              pair.b ? std::optional(static_cast<double>(pair.b->length())) : std::nullopt, true);
    return table.finish();
}

FlatTreePtr peakCategoryTable(const StepPair& pair) {
    StepTable table(QObject::tr("At each peak"), ColumnUnit::ofBytes(pair.top()), pair.b.has_value());
    const base::CategoryBytes& a = pair.a.anatomy.peak.atMax;
    const base::CategoryBytes b = pair.b ? pair.b->anatomy.peak.atMax : base::CategoryBytes{};
    const auto addCategory = [&](std::size_t i) {
        if (a[i] > 0 || b[i] > 0) {
            const auto category = static_cast<base::MemoryCategory>(i);
            table.add(textOf(base::categoryName(category)), static_cast<double>(a[i]), static_cast<double>(b[i]))
                .category = static_cast<int>(i);
        }
    };
    for (std::size_t i = 1; i < a.size(); ++i) {
        addCategory(i);
    }
    addCategory(0); // what no tensor accounts for comes last
    table.add(QObject::tr("total"), static_cast<double>(pair.a.anatomy.peak.maxTotal),
              pair.b ? std::optional(static_cast<double>(pair.b->anatomy.peak.maxTotal)) : std::nullopt, true);
    return table.finish();
}

FlatTreePtr offloadTable(const StepPair& pair, const std::optional<StepAdvice>& advice) {
    auto tree = facts();
    const StepAnatomy& a = pair.a.anatomy;
    if (!a.copies.empty()) {
        const auto out = std::ranges::count(a.copies, true, &profiler::StepCopy::toHost);
        const auto back = static_cast<std::ptrdiff_t>(a.copies.size()) - out;
        addFact(*tree, QObject::tr("pinned host"), bytesText(a.pinned));
        addFact(*tree, QObject::tr("copies"), QObject::tr("%1 out, %2 back").arg(out).arg(back));
        if (a.copiesTimed) {
            base::TimeNs time = 0;
            for (const profiler::StepCopy& copy : a.copies) {
                time += copy.end - copy.begin;
            }
            addFact(*tree, QObject::tr("waited for copies"),
                    QObject::tr("%1 of %2").arg(durationText(a.waited()), durationText(time)));
        }
    }
    if (advice && advice->otherwise) {
        const auto less = static_cast<std::int64_t>(advice->offloaded ? *advice->otherwise : advice->peak) -
                          static_cast<std::int64_t>(advice->offloaded ? advice->peak : *advice->otherwise);
        addFact(*tree, advice->offloaded ? QObject::tr("saves, by the plan") : QObject::tr("would save, by the plan"),
                less > 0 ? bytesText(static_cast<std::uint64_t>(less)) : QObject::tr("nothing"));
        if (!advice->offloaded && advice->host > 0) {
            addFact(*tree, QObject::tr("would take of the host"), bytesText(advice->host));
        }
    }
    return tree;
}

FlatTreePtr agreementTable(const StepPair& pair) {
    auto tree = facts();
    if (!pair.b) {
        return tree;
    }
    const base::TrainingStepEvent &a = pair.a.values, &b = pair.b->values;
    const bool equal = a.loss == b.loss || lossText(a.loss) == lossText(b.loss);
    addFact(*tree, QObject::tr("loss"),
            equal ? QObject::tr("%1, equal").arg(lossText(a.loss))
                  : QObject::tr("%1 and %2").arg(lossText(a.loss), lossText(b.loss)));
    const double largest = std::max(std::abs(a.gradientNorm), std::abs(b.gradientNorm));
    const double apart = largest > 0 ? std::abs(a.gradientNorm - b.gradientNorm) / largest : 0;
    addFact(*tree, QObject::tr("gradient norm"),
            !std::isfinite(apart) ? unknownText()
            : apart == 0          ? QObject::tr("equal")
                                  : QObject::tr("%1 relative").arg(rateOfLearningText(apart)));
    return tree;
}

FlatTreePtr stepItemTable(const StepPair& pair) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Part of the step")},
                     {QObject::tr("Begin"), true, QObject::tr("Begin, ns")},
                     {QObject::tr("Time"), true, QObject::tr("Time, ns")},
                     {QObject::tr("Peak"), true, QObject::tr("Peak, bytes")}};
    if (pair.b) {
        tree->columns.push_back({QObject::tr("Peak of B"), true, QObject::tr("Peak of B, bytes")});
    }
    const StepAnatomy& a = pair.a.anatomy;
    const auto bytesCell = [](std::uint64_t bytes) {
        return FlatCell(bytesText(bytes), QVariant::fromValue<qulonglong>(bytes), QString::number(bytes));
    };
    const auto timeCell = [](base::TimeNs time) {
        return FlatCell(durationText(time), QVariant::fromValue<qlonglong>(time), QString::number(time));
    };
    for (const profiler::StepItem& item : a.items) {
        FlatNode node;
        node.key = tree->nodes.size() + 1;
        QString name = textOf(profiler::phaseName(item.phase));
        if (item.index >= 0) {
            name += item.phase == profiler::TrainingPhase::Loss ? QObject::tr(", chunk %1").arg(item.index + 1)
                                                                : QObject::tr(", layer %1").arg(item.index);
        }
        if (a.passes > 1 && profiler::isOfMicroBatch(item.phase)) {
            name += QObject::tr(", micro-batch %1").arg(item.pass + 1);
        }
        node.cells = {FlatCell(name), timeCell(item.begin - a.begin), timeCell(item.end - item.begin),
                      bytesCell(item.peak.maxTotal)};
        if (pair.b) {
            const base::TimeNs begin = pair.b->anatomy.begin + pair.phases.timeInB(item.begin - a.begin);
            const base::TimeNs end = pair.b->anatomy.begin + pair.phases.timeInB(item.end - a.begin);
            node.cells.push_back(bytesCell(pair.b->timeline->memory().peak(begin, std::max(end, begin + 1)).maxTotal));
        }
        tree->nodes.push_back(std::move(node));
    }
    return tree;
}

} // namespace vitrine::ui
