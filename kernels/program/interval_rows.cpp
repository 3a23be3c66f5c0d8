// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Masks whose rows are intervals, found by structure.

#include <limits>
#include <map>

#include "kernels/program/interval_analysis.h"
#include "kernels/program/program_copy.h"

namespace vitrine::kernels {

namespace {

using Value = ProgramBuilder::Value;
using Bound = std::optional<Value>; ///< none: unbounded

constexpr int kDeepestRow = 200;

/// low <= key <= high, in Int64 nodes that do not read the key.
struct Interval {
    Bound low, high;
};

/// slope * key + rest = value of an integer node.
struct Linear {
    std::int64_t slope = 0;
    Value rest = -1;
};

class Finder {
public:
    /// `hull`: parts without a closed form count as everything.
    Finder(const Program& mask, bool hull) : mask_(mask), inputs_(inputsOf(mask)), hull_(hull) {}

    bool exact() const { return exact_; }

    std::optional<IntervalRows> find() {
        const std::optional<Interval> interval = intervalOf(mask_.result, true, 0);
        if (!interval.has_value()) {
            return std::nullopt;
        }
        IntervalRows rows;
        rows.lowUnbounded = !interval->low.has_value();
        rows.highUnbounded = !interval->high.has_value();
        rows.low = withCapturesOf(builder_.finish(interval->low.value_or(number(0))), mask_);
        rows.high = withCapturesOf(
            builder_.finish(interval->high.value_or(number(std::numeric_limits<std::int32_t>::max()))), mask_);
        return rows;
    }

private:
    bool readsKey(std::int32_t node) const { return (inputs_[static_cast<std::size_t>(node)] & kOnKey) != 0; }
    Value number(std::int64_t value) { return builder_.constant(value, false); }
    Value add(Value a, Value b) { return builder_.binary(ProgramOp::Add, a, b); }
    Value sub(Value a, Value b) { return builder_.binary(ProgramOp::Sub, a, b); }

    /// A node without the key, as a value of the builder.
    Value copy(std::int32_t node) {
        const auto known = copies_.find(node);
        if (known != copies_.end()) {
            return known->second;
        }
        const std::vector<Value> values = copyNodes(builder_, mask_, {&node, 1});
        return copies_[node] = values[static_cast<std::size_t>(node)];
    }
    Value copyWide(std::int32_t node) { return builder_.cast(ProgramType::Int64, copy(node)); }

    /// Positions lie below 2^30 and what is added to them in practice as well, so sums are taken not to wrap.
    std::optional<Linear> linearOf(std::int32_t index, int depth) {
        const ProgramNode& node = mask_.at(index);
        if (node.type == ProgramType::Float || node.type == ProgramType::Bool || depth > kDeepestRow) {
            return std::nullopt;
        }
        if (!readsKey(index)) {
            return Linear{0, copyWide(index)};
        }
        if (node.op == ProgramOp::Key) {
            return Linear{1, number(0)};
        }
        if (node.op == ProgramOp::Cast || node.op == ProgramOp::Neg) {
            std::optional<Linear> inner = linearOf(node.args[0], depth + 1);
            if (inner && node.op == ProgramOp::Neg) {
                inner = Linear{-inner->slope, builder_.unary(ProgramOp::Neg, inner->rest)};
            }
            return inner;
        }
        if (node.op != ProgramOp::Add && node.op != ProgramOp::Sub) {
            return std::nullopt;
        }
        const std::optional<Linear> a = linearOf(node.args[0], depth + 1);
        const std::optional<Linear> b = a ? linearOf(node.args[1], depth + 1) : std::nullopt;
        if (!b) {
            return std::nullopt;
        }
        const bool minus = node.op == ProgramOp::Sub;
        const Linear out{a->slope + (minus ? -b->slope : b->slope),
                         minus ? sub(a->rest, b->rest) : add(a->rest, b->rest)};
        return out.slope >= -1 && out.slope <= 1 ? std::optional(out) : std::nullopt;
    }

    /// node <= limit (upper) or node >= limit, for a node that reads the key.
    std::optional<Interval> bounded(std::int32_t index, bool upper, Value limit, int depth) {
        if (depth > kDeepestRow) {
            return std::nullopt;
        }
        const ProgramNode& node = mask_.at(index);
        if (node.op == ProgramOp::Abs && upper) {
            const std::optional<Interval> below = bounded(node.args[0], true, limit, depth + 1);
            const std::optional<Interval> above =
                bounded(node.args[0], false, builder_.unary(ProgramOp::Neg, limit), depth + 1);
            return below && above ? std::optional(intersection(*below, *above)) : std::nullopt;
        }
        if ((node.op == ProgramOp::Min && !upper) || (node.op == ProgramOp::Max && upper)) {
            return boundedBoth(node, upper, limit, depth);
        }
        if (node.op == ProgramOp::FloorDiv && mask_.at(node.args[1]).op == ProgramOp::Constant &&
            mask_.at(node.args[1]).integer > 0) {
            // x // c <= r is x <= r c + c - 1, x // c >= r is x >= r c.
            const std::int64_t divisor = mask_.at(node.args[1]).integer;
            const Value edge =
                add(builder_.binary(ProgramOp::Mul, limit, number(divisor)), number(upper ? divisor - 1 : 0));
            return bounded(node.args[0], upper, edge, depth + 1);
        }
        const std::optional<Linear> linear = linearOf(index, depth);
        if (!linear || (linear->slope != 1 && linear->slope != -1)) {
            return std::nullopt;
        }
        const Value edge = linear->slope == 1 ? sub(limit, linear->rest) : sub(linear->rest, limit);
        return upper == (linear->slope == 1) ? Interval{std::nullopt, edge} : Interval{edge, std::nullopt};
    }

    /// max(a, b) <= r and min(a, b) >= r: both.
    std::optional<Interval> boundedBoth(const ProgramNode& node, bool upper, Value limit, int depth) {
        std::optional<Interval> out = Interval{};
        for (const std::int32_t arg : argsOf(node)) {
            const std::optional<Interval> part =
                readsKey(arg) ? bounded(arg, upper, limit, depth + 1)
                              : rowOnly(upper ? builder_.binary(ProgramOp::Le, copyWide(arg), limit)
                                              : builder_.binary(ProgramOp::Le, limit, copyWide(arg)));
            if (!part) {
                return std::nullopt;
            }
            out = intersection(*out, *part);
        }
        return out;
    }

    /// All keys when the condition holds, else none.
    Interval rowOnly(Value condition) {
        if (const std::optional<bool> known = builder_.boolean(condition)) {
            return *known ? Interval{} : Interval{std::nullopt, number(-1)};
        }
        return {std::nullopt, builder_.select(condition, number(kEverything), number(-1))};
    }

    Interval intersection(const Interval& a, const Interval& b) {
        const auto both = [&](const Bound& x, const Bound& y, ProgramOp op) -> Bound {
            return !x ? y : !y ? x : Bound(builder_.binary(op, *x, *y));
        };
        return {both(a.low, b.low, ProgramOp::Max), both(a.high, b.high, ProgramOp::Min)};
    }

    /// Half-lines to one side unite to a half-line.
    std::optional<Interval> unionOf(const Interval& a, const Interval& b) {
        if (!a.low && !b.low) {
            return Interval{std::nullopt,
                            !a.high || !b.high ? Bound() : builder_.binary(ProgramOp::Max, *a.high, *b.high)};
        }
        if (!a.high && !b.high) {
            return Interval{!a.low || !b.low ? Bound() : builder_.binary(ProgramOp::Min, *a.low, *b.low), std::nullopt};
        }
        return std::nullopt;
    }

    Interval choice(Value condition, const Interval& a, const Interval& b) {
        const auto pick = [&](const Bound& x, const Bound& y, std::int64_t none) -> Bound {
            return !x && !y ? Bound()
                            : Bound(builder_.select(condition, x.value_or(number(none)), y.value_or(number(none))));
        };
        return {pick(a.low, b.low, 0), pick(a.high, b.high, kEverything)};
    }

    std::optional<Interval> compared(const ProgramNode& node, bool wanted, int depth) {
        const std::int32_t a = node.args[0];
        const std::int32_t b = node.args[1];
        if (mask_.at(a).type == ProgramType::Float || mask_.at(a).type == ProgramType::Bool) {
            return std::nullopt;
        }
        if (node.op == ProgramOp::Eq || node.op == ProgramOp::Ne) {
            return (node.op == ProgramOp::Eq) == wanted ? equal(a, b, depth) : std::nullopt;
        }
        // a <= b, or b < a when it is not wanted; a < b likewise.
        const bool strict = (node.op == ProgramOp::Lt) == wanted;
        return wanted ? ordered(a, b, strict, depth) : ordered(b, a, strict, depth);
    }

    /// a <= b or a < b.
    std::optional<Interval> ordered(std::int32_t a, std::int32_t b, bool strict, int depth) {
        const Value one = number(strict ? 1 : 0);
        if (!readsKey(b)) {
            return bounded(a, true, sub(copyWide(b), one), depth);
        }
        if (!readsKey(a)) {
            return bounded(b, false, add(copyWide(a), one), depth);
        }
        const std::optional<Linear> left = linearOf(a, depth);
        const std::optional<Linear> right = left ? linearOf(b, depth) : std::nullopt;
        if (!right) {
            return std::nullopt;
        }
        // slope * key <= edge
        const std::int64_t slope = left->slope - right->slope;
        const Value edge = sub(sub(right->rest, left->rest), one);
        if (slope == 0) {
            return rowOnly(builder_.binary(ProgramOp::Le, number(0), edge));
        }
        if (slope == 1) {
            return Interval{std::nullopt, edge};
        }
        return slope == -1 ? std::optional(Interval{builder_.unary(ProgramOp::Neg, edge), std::nullopt}) : std::nullopt;
    }

    std::optional<Interval> equal(std::int32_t a, std::int32_t b, int depth) {
        if (readsKey(a) && readsKey(b)) {
            const std::optional<Interval> below = ordered(a, b, false, depth);
            const std::optional<Interval> above = below ? ordered(b, a, false, depth) : std::nullopt;
            return above ? std::optional(intersection(*below, *above)) : std::nullopt;
        }
        const std::int32_t moving = readsKey(a) ? a : b;
        const Value limit = copyWide(readsKey(a) ? b : a);
        const std::optional<Interval> below = bounded(moving, true, limit, depth);
        const std::optional<Interval> above = below ? bounded(moving, false, limit, depth) : std::nullopt;
        return above ? std::optional(intersection(*below, *above)) : std::nullopt;
    }

    /// Keys where the Bool node is `wanted`; in a hull others as well. What is made of larger sets only grows.
    std::optional<Interval> intervalOf(std::int32_t index, bool wanted, int depth) {
        const std::optional<Interval> found = closedFormOf(index, wanted, depth);
        if (found || !hull_) {
            return found;
        }
        exact_ = false;
        return Interval{};
    }

    std::optional<Interval> closedFormOf(std::int32_t index, bool wanted, int depth) {
        if (depth > kDeepestRow) {
            return std::nullopt;
        }
        const ProgramNode& node = mask_.at(index);
        if (!readsKey(index)) {
            const Value condition = copy(index);
            return rowOnly(wanted ? condition : builder_.unary(ProgramOp::Not, condition));
        }
        switch (node.op) {
        case ProgramOp::Not:
            return intervalOf(node.args[0], !wanted, depth + 1);
        case ProgramOp::And:
        case ProgramOp::Or: {
            const std::optional<Interval> a = intervalOf(node.args[0], wanted, depth + 1);
            const std::optional<Interval> b = a ? intervalOf(node.args[1], wanted, depth + 1) : std::nullopt;
            if (!b) {
                return std::nullopt;
            }
            return (node.op == ProgramOp::And) == wanted ? std::optional(intersection(*a, *b))
                                                         : unionWithRows(node, *a, *b, wanted);
        }
        case ProgramOp::Select: {
            if (readsKey(node.args[0])) {
                return std::nullopt;
            }
            const std::optional<Interval> a = intervalOf(node.args[1], wanted, depth + 1);
            const std::optional<Interval> b = a ? intervalOf(node.args[2], wanted, depth + 1) : std::nullopt;
            return b ? std::optional(choice(copy(node.args[0]), *a, *b)) : std::nullopt;
        }
        case ProgramOp::Lt:
        case ProgramOp::Le:
        case ProgramOp::Eq:
        case ProgramOp::Ne:
            return compared(node, wanted, depth);
        default:
            return std::nullopt;
        }
    }

    /// a or b, where one may be a condition of the row alone: then everything, or the other.
    std::optional<Interval> unionWithRows(const ProgramNode& node, const Interval& a, const Interval& b, bool wanted) {
        if (const std::optional<Interval> simple = unionOf(a, b)) {
            return simple;
        }
        for (std::size_t i = 0; i < 2; ++i) {
            if (!readsKey(node.args[i])) {
                const Value condition = copy(node.args[i]);
                return choice(wanted ? condition : builder_.unary(ProgramOp::Not, condition), Interval{},
                              i == 0 ? b : a);
            }
        }
        if (!hull_) {
            return std::nullopt;
        }
        exact_ = false;
        const auto either = [&](const Bound& x, const Bound& y, ProgramOp op) -> Bound {
            return !x || !y ? Bound() : Bound(builder_.binary(op, *x, *y));
        };
        return Interval{either(a.low, b.low, ProgramOp::Min), either(a.high, b.high, ProgramOp::Max)};
    }

    static constexpr std::int64_t kEverything = std::numeric_limits<std::int32_t>::max();

    const Program& mask_;
    std::vector<unsigned> inputs_;
    bool hull_;
    bool exact_ = true;
    ProgramBuilder builder_;
    std::map<std::int32_t, Value> copies_;
};

} // namespace

std::optional<IntervalRows> intervalRows(const Program& mask) {
    return mask.isMask() ? Finder(mask, false).find() : std::nullopt;
}

IntervalRows hullRows(const Program& mask, bool& exact) {
    Finder finder(mask, true);
    const std::optional<IntervalRows> rows = finder.find();
    exact = finder.exact();
    return *rows;
}

} // namespace vitrine::kernels
