// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Why a mask allows or blocks one element.

#include <fmt/format.h>
#include <utility>

#include "kernels/program/emitter.h"
#include "kernels/program/interpreter.h"

namespace vitrine::kernels {

namespace {

constexpr int kDeepestPart = 12;
constexpr std::size_t kMostParts = 200;

bool isLogic(const ProgramNode& node) {
    return node.type == ProgramType::Bool && (node.op == ProgramOp::And || node.op == ProgramOp::Or ||
                                              node.op == ProgramOp::Xor || node.op == ProgramOp::Not);
}

class Explainer {
public:
    explicit Explainer(const Program& program) : program_(program) { visit(program.result, 0); }

    std::vector<ExplainedNode>& parts() { return parts_; }

    /// `of`: the values of all visited nodes, by node.
    void mark(const std::vector<double>& of) {
        marks_.assign(program_.nodes.size(), 0);
        decide(program_.result, of, 0);
        for (ExplainedNode& part : parts_) {
            part.decides = marks_[static_cast<std::size_t>(part.node)] != 0;
        }
    }

    /// Every node whose value is needed: parts, and chains of one operation that were flattened into their parts.
    const std::vector<std::int32_t>& nodes() const { return nodes_; }
    const std::vector<std::size_t>& listed() const { return listed_; }

private:
    void visit(std::int32_t index, int depth, ProgramOp chain = ProgramOp::Score) {
        const ProgramNode& node = program_.at(index);
        if (depth > kDeepestPart || nodes_.size() >= kMostParts) {
            return;
        }
        const bool flattened = isLogic(node) && node.op == chain && node.op != ProgramOp::Not;
        nodes_.push_back(index);
        if (!flattened) {
            listed_.push_back(nodes_.size() - 1);
            ExplainedNode part;
            part.node = index;
            part.text = printNode(program_, index);
            part.span = node.span;
            part.depth = depth;
            parts_.push_back(std::move(part));
        }
        for (const std::int32_t arg : argsOf(node)) {
            const ProgramOp below = program_.at(arg).op;
            const bool plain = program_.at(arg).args[0] < 0 && below != ProgramOp::Scalar;
            if (isLogic(node) || node.op == ProgramOp::Select || !plain) {
                visit(arg, flattened ? depth : depth + 1, isLogic(node) ? node.op : ProgramOp::Score);
            }
        }
    }

    void decide(std::int32_t index, const std::vector<double>& of, int depth) {
        const ProgramNode& node = program_.at(index);
        if (node.type != ProgramType::Bool || depth > kDeepestPart * 4 ||
            marks_[static_cast<std::size_t>(index)] != 0) {
            return;
        }
        marks_[static_cast<std::size_t>(index)] = 1;
        const auto value = [&](std::size_t arg) { return of[static_cast<std::size_t>(node.args[arg])] != 0; };
        if (node.op == ProgramOp::Select) {
            if (value(1) != value(2)) {
                decide(node.args[0], of, depth + 1);
            }
            decide(value(0) ? node.args[1] : node.args[2], of, depth + 1);
            return;
        }
        if (!isLogic(node)) {
            return;
        }
        for (std::size_t i = 0; i < argsOf(node).size(); ++i) {
            const bool other = node.op == ProgramOp::Not ? false : value(1 - i);
            if (node.op == ProgramOp::Xor || node.op == ProgramOp::Not || other == (node.op == ProgramOp::And)) {
                decide(node.args[i], of, depth + 1);
            }
        }
    }

    const Program& program_;
    std::vector<ExplainedNode> parts_;
    std::vector<std::int32_t> nodes_;
    std::vector<std::size_t> listed_;
    std::vector<std::uint8_t> marks_;
};

} // namespace

std::vector<ExplainedNode> explain(const Program& program, const CaptureBinding& binding, const ProgramRow& row,
                                   std::int64_t key, double score) {
    Explainer explainer(program);
    const std::vector<std::int32_t>& nodes = explainer.nodes();
    Interpreter<double> interpreter(program, binding, nodes);
    const double upstream = 1;
    interpreter.run(row, key, 1, &score, &upstream);
    std::vector<double> ofNode(program.nodes.size(), 0);
    std::vector<ExplainedNode>& parts = explainer.parts();
    std::vector<double> all;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const int root = static_cast<int>(i);
        switch (program.at(nodes[i]).type) {
        case ProgramType::Bool:
            all.push_back(interpreter.booleans(root)[0]);
            break;
        case ProgramType::Float:
            all.push_back(interpreter.floats(root)[0]);
            break;
        default:
            all.push_back(static_cast<double>(interpreter.integers(root)[0]));
        }
        ofNode[static_cast<std::size_t>(nodes[i])] = all.back();
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const double value = all[explainer.listed()[i]];
        const ProgramType type = program.at(parts[i].node).type;
        parts[i].value = type == ProgramType::Bool    ? (value != 0 ? "True" : "False")
                         : type == ProgramType::Float ? fmt::format("{:.6g}", value)
                                                      : fmt::format("{:.0f}", value);
    }
    explainer.mark(ofNode);
    return std::exchange(parts, {});
}

} // namespace vitrine::kernels
