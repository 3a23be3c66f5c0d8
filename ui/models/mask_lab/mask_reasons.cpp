// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_reasons.h"

#include <QLocale>
#include <QObject>
#include <algorithm>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using kernels::ProgramNode;
using kernels::ProgramOp;
using kernels::ProgramType;

bool isLogic(const ProgramNode& node) {
    return node.type == ProgramType::Bool && (node.op == ProgramOp::And || node.op == ProgramOp::Or ||
                                              node.op == ProgramOp::Xor || node.op == ProgramOp::Not);
}

bool isComparison(ProgramOp op) {
    return op == ProgramOp::Lt || op == ProgramOp::Le || op == ProgramOp::Eq || op == ProgramOp::Ne;
}

QString realText(double value) {
    return QLocale::c().toString(value, 'g', 5).replace(QLatin1Char('-'), QChar(0x2212));
}

struct Value {
    double number = 0;
    QString text;
};

/// The source's own words for a node; the printer's where the builder made it.
QString wordsOf(const kernels::Program& program, const kernels::ExplainedNode& part) {
    const kernels::ProgramSpan span = part.span;
    if (span.source >= 0 && static_cast<std::size_t>(span.source) < program.sources.size()) {
        const std::string& source = program.sources[static_cast<std::size_t>(span.source)];
        if (span.begin >= 0 && span.begin < span.end && static_cast<std::size_t>(span.end) <= source.size()) {
            const QString text = textOf(std::string_view(source).substr(
                static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin)));
            return text.simplified();
        }
    }
    return textOf(part.text);
}

/// Evaluates chosen nodes at one element.
class Evaluator {
public:
    Evaluator(const MaskProgram& program, std::vector<std::int32_t> nodes)
        : program_(program), nodes_(std::move(nodes)) {}

    std::vector<Value> at(const kernels::ProgramRow& row, std::int64_t key) const {
        kernels::Interpreter<double> interpreter(program_.program, program_.binding, nodes_);
        const double zero = 0;
        interpreter.run(row, key, 1, &zero, &zero);
        std::vector<Value> values;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            const int root = static_cast<int>(i);
            switch (program_.program.at(nodes_[i]).type) {
            case ProgramType::Bool:
                values.push_back({static_cast<double>(interpreter.booleans(root)[0]), interpreter.booleans(root)[0] != 0
                                                                                          ? QStringLiteral("True")
                                                                                          : QStringLiteral("False")});
                break;
            case ProgramType::Float:
                values.push_back({interpreter.floats(root)[0], realText(interpreter.floats(root)[0])});
                break;
            default:
                values.push_back(
                    {static_cast<double>(interpreter.integers(root)[0]), countText(interpreter.integers(root)[0])});
            }
        }
        return values;
    }

private:
    const MaskProgram& program_;
    std::vector<std::int32_t> nodes_;
};

/// "8,284 ≥ 8,220": what holds between the two, in the order in which the source wrote them.
QString relation(ProgramOp op, Value left, Value right, const QString& words) {
    if ((op == ProgramOp::Lt || op == ProgramOp::Le) && words.contains(QLatin1Char('>')) &&
        !words.contains(QLatin1Char('<'))) {
        std::swap(left, right); // the builder knows no "greater"
    }
    if (op == ProgramOp::Eq || op == ProgramOp::Ne) {
        return left.number == right.number ? QObject::tr("both %1").arg(left.text)
                                           : QObject::tr("%1 is not %2").arg(left.text, right.text);
    }
    const bool strict = op == ProgramOp::Lt;
    const QString sign = left.number == right.number ? (strict                             ? QStringLiteral("=")
                                                        : words.contains(QLatin1Char('>')) ? QStringLiteral("≥")
                                                                                           : QStringLiteral("≤"))
                         : left.number < right.number
                             ? (strict || words.contains(QLatin1Char('>')) ? QStringLiteral("<") : QStringLiteral("≤"))
                         : strict || !words.contains(QLatin1Char('>')) ? QStringLiteral(">")
                                                                       : QStringLiteral("≥");
    return QStringLiteral("%1 %2 %3").arg(left.text, sign, right.text);
}

std::vector<MaskReason> reasonsOf(const MaskProgram& mask, const kernels::ProgramRow& row, std::int64_t key) {
    const kernels::Program& program = mask.program;
    const std::vector<kernels::ExplainedNode> parts = kernels::explain(program, mask.binding, row, key, 0);
    std::vector<kernels::ExplainedNode> conditions;
    std::vector<std::int32_t> nodes;
    for (const kernels::ExplainedNode& part : parts) {
        const ProgramNode& node = program.at(part.node);
        const bool known = std::any_of(conditions.begin(), conditions.end(),
                                       [&part](const auto& one) { return one.node == part.node; });
        if (node.type != ProgramType::Bool || isLogic(node) || node.op == ProgramOp::Select || known) {
            continue;
        }
        conditions.push_back(part);
        nodes.push_back(part.node);
        const auto args = kernels::argsOf(node);
        nodes.insert(nodes.end(), args.begin(), args.end());
    }
    const std::vector<Value> values = Evaluator(mask, nodes).at(row, key);
    std::vector<MaskReason> reasons;
    std::size_t next = 0;
    for (const kernels::ExplainedNode& part : conditions) {
        const ProgramNode& node = program.at(part.node);
        MaskReason reason;
        reason.text = wordsOf(program, part);
        reason.holds = values[next].number != 0;
        reason.decides = part.decides;
        reason.depth = part.depth;
        reason.span = part.span;
        const std::size_t args = kernels::argsOf(node).size();
        reason.values = isComparison(node.op) && args == 2
                            ? relation(node.op, values[next + 1], values[next + 2], reason.text)
                            : values[next].text;
        next += 1 + args;
        reasons.push_back(std::move(reason));
    }
    return reasons;
}

/// The condition that decides alone; where several block together, the first of them.
int decidingReason(const MaskReasons& all) {
    const auto place = [&all](const auto& wanted) {
        const auto found = std::find_if(all.reasons.begin(), all.reasons.end(), wanted);
        return found == all.reasons.end() ? -1 : static_cast<int>(found - all.reasons.begin());
    };
    const int alone = place([&all](const MaskReason& reason) { return reason.decides && reason.holds == all.allowed; });
    return alone >= 0 || all.allowed ? alone : place([](const MaskReason& reason) { return !reason.holds; });
}

} // namespace

MaskReasons maskReasons(const MaskProgram* mask, const MaskProgram* score, const kernels::ProgramRow& row,
                        std::int64_t key) {
    MaskReasons out;
    if (mask != nullptr) {
        out.reasons = reasonsOf(*mask, row, key);
        out.allowed = Evaluator(*mask, {mask->program.result}).at(row, key).front().number != 0;
    }
    if (score != nullptr) {
        out.score = Evaluator(*score, {score->program.result}).at(row, key).front().text;
    }
    out.sentence = out.allowed ? QObject::tr("allowed") : QObject::tr("blocked");
    out.deciding = decidingReason(out);
    if (out.deciding >= 0 && !out.allowed) {
        const MaskReason& first = out.reasons[static_cast<std::size_t>(out.deciding)];
        const auto failing = std::count_if(out.reasons.begin(), out.reasons.end(),
                                           [](const MaskReason& reason) { return !reason.holds; });
        out.sentence = first.decides || failing < 2 ? QObject::tr("blocked by %1 (%2)").arg(first.text, first.values)
                                                    : QObject::tr("blocked by %1 conditions, among them %2 (%3)")
                                                          .arg(QString::number(failing), first.text, first.values);
    }
    return out;
}

int lineOfSpan(const kernels::Program& program, const kernels::ProgramSpan& span, const std::string& text) {
    if (span.source < 0 || static_cast<std::size_t>(span.source) >= program.sources.size() ||
        program.sources[static_cast<std::size_t>(span.source)] != text || span.begin < 0 ||
        static_cast<std::size_t>(span.begin) > text.size()) {
        return 0;
    }
    return 1 + static_cast<int>(std::count(text.begin(), text.begin() + span.begin, '\n'));
}

} // namespace vitrine::ui
