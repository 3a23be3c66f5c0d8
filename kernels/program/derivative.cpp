// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/derivative.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/integers.h"
#include "kernels/program/program_copy.h"

namespace vitrine::kernels {

namespace {

using Value = ProgramBuilder::Value;

class Reverse {
public:
    explicit Reverse(const Program& score)
        : score_(score), values_(copyNodes(b_, score, {&score.result, 1})), adjoints_(score.nodes.size(), -1) {
        needed_.assign(score.nodes.size(), 0);
        for (std::size_t i = 0; i < score.nodes.size(); ++i) {
            const ProgramNode& node = score.nodes[i];
            bool needed = node.op == ProgramOp::Score || isDifferentiable(node);
            for (const std::int32_t arg : argsOf(node)) {
                needed = needed || needed_[base::toIndex(arg)] != 0;
            }
            needed_[i] = needed && node.type == ProgramType::Float ? 1 : 0;
        }
    }

    ScoreGradient run() {
        give(score_.result, b_.input(ProgramOp::Upstream));
        Value byScore = b_.constant(0.0, false);
        ScoreGradient out;
        std::vector<Value> roots{-1};
        for (std::int32_t i = score_.result; i >= 0; --i) {
            const Value g = adjoints_[base::toIndex(i)];
            if (g < 0) {
                continue;
            }
            const ProgramNode& node = score_.at(i);
            if (node.op == ProgramOp::Score) {
                byScore = g;
            } else if (node.op == ProgramOp::Load || node.op == ProgramOp::Scalar) {
                out.captures.push_back({node.capture, {}, -1});
                for (const std::int32_t arg : argsOf(node)) {
                    roots.push_back(values_[base::toIndex(arg)]);
                    out.captures.back().indices.push_back(-1);
                }
                roots.push_back(g);
            } else {
                propagate(node, values_[base::toIndex(i)], g);
            }
        }
        roots[0] = byScore;
        std::vector<std::int32_t> results;
        out.program = withCapturesOf(b_.finish(roots, results), score_);
        std::size_t next = 1;
        for (ScoreGradient::CaptureGradient& capture : out.captures) {
            for (std::int32_t& index : capture.indices) {
                index = results[next++];
            }
            capture.value = results[next++];
        }
        const unsigned inputs = inputsOf(out.program)[base::toIndex(out.program.result)];
        out.linear = (inputs & kOnScore) == 0;
        out.identity = out.program.at(out.program.result).op == ProgramOp::Upstream;
        return out;
    }

private:
    bool isDifferentiable(const ProgramNode& node) const {
        return (node.op == ProgramOp::Load || node.op == ProgramOp::Scalar) && node.type == ProgramType::Float &&
               score_.captures[base::toIndex(node.capture)].differentiable;
    }

    Value add(Value x, Value y) { return b_.binary(ProgramOp::Add, x, y); }
    Value sub(Value x, Value y) { return b_.binary(ProgramOp::Sub, x, y); }
    Value mul(Value x, Value y) { return b_.binary(ProgramOp::Mul, x, y); }
    Value div(Value x, Value y) { return b_.binary(ProgramOp::Div, x, y); }
    Value neg(Value x) { return b_.unary(ProgramOp::Neg, x); }
    Value number(double x) { return b_.constant(x, false); }

    void give(std::int32_t node, Value g) {
        if (needed_[base::toIndex(node)] == 0) {
            return;
        }
        Value& sum = adjoints_[base::toIndex(node)];
        sum = sum < 0 ? g : add(sum, g);
    }

    void propagate(const ProgramNode& node, Value v, Value g) {
        if (argsOf(node).size() == 1) {
            if (node.op != ProgramOp::Cast) {
                giveUnary(node, v, g);
            }
        } else if (node.op == ProgramOp::Select) {
            const Value condition = values_[base::toIndex(node.args[0])];
            give(node.args[1], b_.select(condition, g, number(0)));
            give(node.args[2], b_.select(condition, number(0), g));
        } else {
            giveBinary(node, v, g);
        }
    }

    void giveUnary(const ProgramNode& node, Value v, Value g) {
        const std::int32_t arg = node.args[0];
        const Value a = values_[base::toIndex(arg)];
        switch (node.op) {
        case ProgramOp::Neg:
            return give(arg, neg(g));
        case ProgramOp::Abs:
            return give(arg, mul(g, b_.unary(ProgramOp::Sign, a)));
        case ProgramOp::Exp:
            return give(arg, mul(g, v));
        case ProgramOp::Exp2:
            return give(arg, mul(mul(g, v), number(std::numbers::ln2)));
        case ProgramOp::Expm1:
            return give(arg, mul(g, add(v, number(1))));
        case ProgramOp::Log:
            return give(arg, div(g, a));
        case ProgramOp::Log2:
            return give(arg, div(g, mul(a, number(std::numbers::ln2))));
        case ProgramOp::Log1p:
            return give(arg, div(g, add(a, number(1))));
        case ProgramOp::Sqrt:
            return give(arg, div(g, mul(v, number(2))));
        case ProgramOp::Rsqrt:
            return give(arg, mul(mul(g, number(-0.5)), mul(v, mul(v, v))));
        case ProgramOp::Tanh:
            return give(arg, mul(g, sub(number(1), mul(v, v))));
        case ProgramOp::Sigmoid:
            return give(arg, mul(g, mul(v, sub(number(1), v))));
        case ProgramOp::Sin:
            return give(arg, mul(g, b_.unary(ProgramOp::Cos, a)));
        case ProgramOp::Cos:
            return give(arg, neg(mul(g, b_.unary(ProgramOp::Sin, a))));
        case ProgramOp::Erf:
            return give(arg,
                        mul(mul(g, number(2 * std::numbers::inv_sqrtpi)), b_.unary(ProgramOp::Exp, neg(mul(a, a)))));
        default: // steps: 0 wherever they have a derivative
            return;
        }
    }

    void giveBinary(const ProgramNode& node, Value v, Value g) {
        const std::int32_t left = node.args[0];
        const std::int32_t right = node.args[1];
        const Value a = values_[base::toIndex(left)];
        const Value c = values_[base::toIndex(right)];
        switch (node.op) {
        case ProgramOp::Add:
            give(left, g);
            return give(right, g);
        case ProgramOp::Sub:
            give(left, g);
            return give(right, neg(g));
        case ProgramOp::Mul:
            give(left, mul(g, c));
            return give(right, mul(g, a));
        case ProgramOp::Div:
            give(left, div(g, c));
            return give(right, neg(div(mul(g, v), c)));
        case ProgramOp::Atan2: {
            const Value square = add(mul(a, a), mul(c, c));
            give(left, div(mul(g, c), square));
            return give(right, neg(div(mul(g, a), square)));
        }
        case ProgramOp::Mod: // a - c * (a // c)
            give(left, g);
            return give(right, neg(mul(g, b_.binary(ProgramOp::FloorDiv, a, c))));
        case ProgramOp::Min:
        case ProgramOp::Max: {
            const bool least = node.op == ProgramOp::Min;
            const Value half = mul(g, number(0.5));
            const Value same = b_.binary(ProgramOp::Eq, a, c);
            const Value takesLeft = least ? b_.binary(ProgramOp::Lt, a, c) : b_.binary(ProgramOp::Lt, c, a);
            give(left, b_.select(same, half, b_.select(takesLeft, g, number(0))));
            return give(right, b_.select(same, half, b_.select(takesLeft, number(0), g)));
        }
        case ProgramOp::Pow:
            return givePower(left, right, v, g);
        default: // FloorDiv
            return;
        }
    }

    /// As PyTorch: an exponent of 0 gives the base no gradient, a base of 0 gives the exponent none.
    void givePower(std::int32_t left, std::int32_t right, Value v, Value g) {
        const Value a = values_[base::toIndex(left)];
        const Value c = values_[base::toIndex(right)];
        const Value zero = number(0);
        if (needed_[base::toIndex(left)] != 0) {
            const Value slope = mul(g, mul(c, b_.binary(ProgramOp::Pow, a, sub(c, number(1)))));
            give(left, b_.select(b_.binary(ProgramOp::Eq, c, zero), zero, slope));
        }
        if (needed_[base::toIndex(right)] != 0) {
            const Value flat =
                b_.binary(ProgramOp::And, b_.binary(ProgramOp::Eq, a, zero), b_.binary(ProgramOp::Le, zero, c));
            give(right, b_.select(flat, zero, mul(g, mul(v, b_.unary(ProgramOp::Log, a)))));
        }
    }

    const Program& score_;
    ProgramBuilder b_;
    std::vector<Value> values_;   ///< of the program's nodes, in b_
    std::vector<Value> adjoints_; ///< d result / d node times Upstream; -1: none
    std::vector<std::uint8_t> needed_;
};

} // namespace

ScoreGradient derivativeOf(const Program& score) {
    if (score.type() != ProgramType::Float) {
        throw base::BadInput(
            "score: the program gives a boolean or an integer, which has no derivative; pass it as the "
            "mask, or return a float");
    }
    return Reverse(score).run();
}

} // namespace vitrine::kernels
