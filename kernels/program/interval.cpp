// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/interval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

#include "kernels/program/scalar_math.h"

namespace vitrine::kernels {

namespace {

__extension__ using Wide = __int128;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kExactInFloat = std::int64_t{1} << 24;

std::int64_t lowest(ProgramType type) {
    return type == ProgramType::Int32 ? std::numeric_limits<std::int32_t>::min()
                                      : std::numeric_limits<std::int64_t>::min();
}
std::int64_t highest(ProgramType type) {
    return type == ProgramType::Int32 ? std::numeric_limits<std::int32_t>::max()
                                      : std::numeric_limits<std::int64_t>::max();
}

/// The range, or the whole type when something could wrap.
ValueRange fitted(ProgramType type, Wide low, Wide high) {
    if (low < lowest(type) || high > highest(type)) {
        return wholeRange(type);
    }
    return integerRange(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
}

ValueRange fittedHull(ProgramType type, std::initializer_list<Wide> values) {
    return fitted(type, std::min(values), std::max(values));
}

ValueRange truth(bool canBeFalse, bool canBeTrue) {
    return integerRange(canBeFalse ? 0 : 1, canBeTrue ? 1 : 0);
}

ValueRange floatRange(double low, double high, bool maybeNan) {
    ValueRange out;
    if (std::isnan(low) || std::isnan(high)) {
        out.realLow = -kInfinity;
        out.realHigh = kInfinity;
        out.maybeNan = true;
        return out;
    }
    out.realLow = low;
    out.realHigh = high;
    out.maybeNan = maybeNan;
    return out;
}

/// The backend that runs the program may round to float32 after each operation.
ValueRange rounded(double low, double high, bool maybeNan) {
    constexpr double kRelative = 1.0 / (1 << 20);
    constexpr double kTiny = 1e-37;
    ValueRange out = floatRange(low, high, maybeNan);
    if (std::isfinite(out.realLow)) {
        out.realLow -= std::fabs(out.realLow) * kRelative + kTiny;
    }
    if (std::isfinite(out.realHigh)) {
        out.realHigh += std::fabs(out.realHigh) * kRelative + kTiny;
    }
    constexpr double kLargestFloat = 3.4e38;
    if (out.realLow < -kLargestFloat) {
        out.realLow = -kInfinity;
    }
    if (out.realHigh > kLargestFloat) {
        out.realHigh = kInfinity;
    }
    return out;
}

ValueRange floorDivRange(ProgramType type, const ValueRange& a, const ValueRange& b) {
    const auto quotient = [](std::int64_t x, std::int64_t y) -> Wide {
        const Wide divided = Wide{x} / y;
        return Wide{x} % y != 0 && (x < 0) != (y < 0) ? divided - 1 : divided;
    };
    Wide low = 0;
    Wide high = 0;
    bool any = false;
    const auto add = [&](Wide value) {
        low = any ? std::min(low, value) : value;
        high = any ? std::max(high, value) : value;
        any = true;
    };
    const auto corners = [&](std::int64_t from, std::int64_t to) {
        if (from <= to) {
            for (const std::int64_t x : {a.low, a.high}) {
                add(quotient(x, from));
                add(quotient(x, to));
            }
        }
    };
    corners(std::max<std::int64_t>(b.low, 1), b.high);
    corners(b.low, std::min<std::int64_t>(b.high, -1));
    if (b.low <= 0 && b.high >= 0) {
        add(0);
    }
    return fitted(type, low, high);
}

ValueRange modRange(const ValueRange& a, const ValueRange& b) {
    if (b.single() && b.low != 0) {
        const std::int64_t period = scalar::floorDiv(a.low, b.low);
        if (period == scalar::floorDiv(a.high, b.low)) {
            const std::int64_t first = scalar::mod(a.low, b.low);
            const std::int64_t last = scalar::mod(a.high, b.low);
            return integerRange(std::min(first, last), std::max(first, last));
        }
    }
    if (b.low > 0 && a.low >= 0 && a.high < b.low) {
        return a;
    }
    const std::int64_t low = b.low < 0 ? b.low + 1 : 0;
    const std::int64_t high = b.high > 0 ? b.high - 1 : 0;
    return integerRange(low, a.low >= 0 && b.low > 0 ? std::min(high, a.high) : high);
}

ValueRange bitsRange(ProgramOp op, ProgramType type, const ValueRange& a, const ValueRange& b) {
    if (a.single() && b.single()) {
        return exactRange(op == ProgramOp::And ? a.low & b.low : op == ProgramOp::Or ? a.low | b.low : a.low ^ b.low);
    }
    if (a.low < 0 || b.low < 0) {
        if (op == ProgramOp::And && (a.low >= 0 || b.low >= 0)) {
            return integerRange(0, a.low >= 0 ? a.high : b.high);
        }
        return wholeRange(type);
    }
    const ValueRange& mask = a.single() ? a : b;
    if (op == ProgramOp::And) {
        if (mask.single() && mask.low < highest(ProgramType::Int64) &&
            std::has_single_bit(static_cast<std::uint64_t>(mask.low) + 1)) {
            return modRange(a.single() ? b : a, exactRange(mask.low + 1));
        }
        return integerRange(0, std::min(a.high, b.high));
    }
    const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(std::max(a.high, b.high))));
    const auto high = static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1);
    return integerRange(op == ProgramOp::Or ? std::max(a.low, b.low) : 0, high);
}

ValueRange integerOperation(ProgramOp op, ProgramType type, const ValueRange& a, const ValueRange& b) {
    switch (op) {
    case ProgramOp::Add:
        return fitted(type, Wide{a.low} + b.low, Wide{a.high} + b.high);
    case ProgramOp::Sub:
        return fitted(type, Wide{a.low} - b.high, Wide{a.high} - b.low);
    case ProgramOp::Mul:
        return fittedHull(type,
                          {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high});
    case ProgramOp::FloorDiv:
        return floorDivRange(type, a, b);
    case ProgramOp::Mod:
        return modRange(a, b);
    case ProgramOp::Min:
        return integerRange(std::min(a.low, b.low), std::min(a.high, b.high));
    case ProgramOp::Max:
        return integerRange(std::max(a.low, b.low), std::max(a.high, b.high));
    case ProgramOp::Neg:
        return fitted(type, -Wide{a.high}, -Wide{a.low});
    case ProgramOp::Abs:
        if (a.low >= 0) {
            return a;
        }
        return fitted(type, a.high <= 0 ? -Wide{a.high} : Wide{0}, std::max(-Wide{a.low}, Wide{a.high}));
    case ProgramOp::Sign:
        return integerRange(scalar::sign(a.low), scalar::sign(a.high));
    case ProgramOp::Not:
        return integerRange(~a.high, ~a.low);
    case ProgramOp::And:
    case ProgramOp::Or:
    case ProgramOp::Xor:
        return bitsRange(op, type, a, b);
    case ProgramOp::ShiftLeft:
        if (b.single() && b.low >= 0 && b.low < (type == ProgramType::Int32 ? 32 : 63)) {
            const Wide factor = Wide{1} << static_cast<int>(b.low);
            return fitted(type, Wide{a.low} * factor, Wide{a.high} * factor);
        }
        return wholeRange(type);
    case ProgramOp::ShiftRight:
        if (b.single()) {
            return integerRange(scalar::shiftRight(a.low, b.low), scalar::shiftRight(a.high, b.low));
        }
        return integerRange(std::min<std::int64_t>(a.low, 0), std::max<std::int64_t>(a.high, 0));
    default:
        return wholeRange(type);
    }
}

ValueRange logicalOperation(ProgramOp op, const ValueRange& a, const ValueRange& b) {
    switch (op) {
    case ProgramOp::And:
        return integerRange(a.low & b.low, a.high & b.high);
    case ProgramOp::Or:
        return integerRange(a.low | b.low, a.high | b.high);
    case ProgramOp::Not:
        return integerRange(1 - a.high, 1 - a.low);
    default:
        return a.single() && b.single() ? exactRange(a.low ^ b.low) : integerRange(0, 1);
    }
}

template <class T> ValueRange compared(ProgramOp op, T aLow, T aHigh, T bLow, T bHigh, bool maybeNan) {
    const bool apart = aHigh < bLow || bHigh < aLow;
    const bool same = aLow == aHigh && bLow == bHigh && aLow == bLow;
    switch (op) {
    case ProgramOp::Lt:
        return truth(maybeNan || !(aHigh < bLow), aLow < bHigh);
    case ProgramOp::Le:
        return truth(maybeNan || !(aHigh <= bLow), aLow <= bHigh);
    case ProgramOp::Eq:
        return truth(maybeNan || !same, !apart);
    default:
        return truth(!apart, maybeNan || !same);
    }
}

double productCorner(double a, double b) {
    return a == 0 || b == 0 ? 0 : a * b; // an infinite corner beside a zero is a limit, not a value
}

ValueRange floatProduct(const ValueRange& a, const ValueRange& b, bool maybeNan) {
    const auto corners = {productCorner(a.realLow, b.realLow), productCorner(a.realLow, b.realHigh),
                          productCorner(a.realHigh, b.realLow), productCorner(a.realHigh, b.realHigh)};
    const auto infinite = [](const ValueRange& r) { return std::isinf(r.realLow) || std::isinf(r.realHigh); };
    return rounded(std::min(corners), std::max(corners), maybeNan || infinite(a) || infinite(b));
}

/// Functions that rise with their argument.
ValueRange rising(ProgramOp op, const ValueRange& a) {
    const auto apply = [&](auto function, bool nan) {
        return rounded(function(a.realLow), function(a.realHigh), a.maybeNan || nan);
    };
    switch (op) {
    case ProgramOp::Exp:
        return apply([](double x) { return std::exp(x); }, false);
    case ProgramOp::Exp2:
        return apply([](double x) { return std::exp2(x); }, false);
    case ProgramOp::Expm1:
        return apply([](double x) { return std::expm1(x); }, false);
    case ProgramOp::Tanh:
        return apply([](double x) { return std::tanh(x); }, false);
    case ProgramOp::Sigmoid:
        return apply([](double x) { return scalar::sigmoid(x); }, false);
    case ProgramOp::Erf:
        return apply([](double x) { return std::erf(x); }, false);
    case ProgramOp::Sqrt:
        return apply([](double x) { return std::sqrt(std::max(x, 0.0)); }, a.realLow < 0);
    case ProgramOp::Log:
        return apply([](double x) { return std::log(std::max(x, 0.0)); }, a.realLow < 0);
    case ProgramOp::Log2:
        return apply([](double x) { return std::log2(std::max(x, 0.0)); }, a.realLow < 0);
    case ProgramOp::Log1p:
        return apply([](double x) { return std::log1p(std::max(x, -1.0)); }, a.realLow < -1);
    case ProgramOp::Floor:
        return floatRange(std::floor(a.realLow), std::floor(a.realHigh), a.maybeNan);
    case ProgramOp::Ceil:
        return floatRange(std::ceil(a.realLow), std::ceil(a.realHigh), a.maybeNan);
    case ProgramOp::Round:
        return floatRange(std::nearbyint(a.realLow), std::nearbyint(a.realHigh), a.maybeNan);
    case ProgramOp::Trunc:
        return floatRange(std::trunc(a.realLow), std::trunc(a.realHigh), a.maybeNan);
    case ProgramOp::Sign:
        return floatRange(scalar::sign(a.realLow), scalar::sign(a.realHigh), a.maybeNan);
    default:
        return wholeRange(ProgramType::Float);
    }
}

/// In front of the axis the angle rises or falls along each coordinate, so corners have the ends.
ValueRange angleRange(const ValueRange& y, const ValueRange& x, bool maybeNan) {
    if (!(x.realLow > 0)) {
        return rounded(-std::numbers::pi, std::numbers::pi, maybeNan);
    }
    const auto corners = {std::atan2(y.realLow, x.realLow), std::atan2(y.realLow, x.realHigh),
                          std::atan2(y.realHigh, x.realLow), std::atan2(y.realHigh, x.realHigh)};
    return rounded(std::min(corners), std::max(corners), maybeNan);
}

ValueRange floatOperation(ProgramOp op, const ValueRange& a, const ValueRange& b) {
    const bool nan = a.maybeNan || b.maybeNan;
    const bool bothInfinite =
        (std::isinf(a.realLow) || std::isinf(a.realHigh)) && (std::isinf(b.realLow) || std::isinf(b.realHigh));
    switch (op) {
    case ProgramOp::Add:
        return rounded(a.realLow + b.realLow, a.realHigh + b.realHigh, nan || bothInfinite);
    case ProgramOp::Sub:
        return rounded(a.realLow - b.realHigh, a.realHigh - b.realLow, nan || bothInfinite);
    case ProgramOp::Mul:
        return floatProduct(a, b, nan);
    case ProgramOp::Div:
        if (b.realLow > 0 || b.realHigh < 0) {
            return floatProduct(a, floatRange(1 / b.realHigh, 1 / b.realLow, b.maybeNan), nan || bothInfinite);
        }
        return wholeRange(ProgramType::Float);
    case ProgramOp::Atan2:
        return angleRange(a, b, nan);
    case ProgramOp::FloorDiv:
        return rising(ProgramOp::Floor, floatOperation(ProgramOp::Div, a, b));
    case ProgramOp::Min:
        return floatRange(std::min(a.realLow, b.realLow), std::min(a.realHigh, b.realHigh), nan);
    case ProgramOp::Max:
        return floatRange(std::max(a.realLow, b.realLow), std::max(a.realHigh, b.realHigh), nan);
    case ProgramOp::Neg:
        return floatRange(-a.realHigh, -a.realLow, nan);
    case ProgramOp::Abs:
        return floatRange(a.realLow <= 0 && a.realHigh >= 0 ? 0 : std::min(std::fabs(a.realLow), std::fabs(a.realHigh)),
                          std::max(std::fabs(a.realLow), std::fabs(a.realHigh)), nan);
    case ProgramOp::Rsqrt:
        return a.realLow > 0 ? rounded(1 / std::sqrt(a.realHigh), 1 / std::sqrt(a.realLow), nan)
                             : wholeRange(ProgramType::Float);
    default:
        return rising(op, a);
    }
}

} // namespace

ValueRange exactRange(std::int64_t value) {
    return integerRange(value, value);
}

ValueRange integerRange(std::int64_t low, std::int64_t high) {
    ValueRange out;
    out.low = low;
    out.high = high;
    return out;
}

ValueRange wholeRange(ProgramType type) {
    switch (type) {
    case ProgramType::Bool:
        return integerRange(0, 1);
    case ProgramType::Float:
        return floatRange(-kInfinity, kInfinity, true);
    default:
        return integerRange(lowest(type), highest(type));
    }
}

ValueRange hull(ProgramType type, const ValueRange& a, const ValueRange& b) {
    if (type == ProgramType::Float) {
        return floatRange(std::min(a.realLow, b.realLow), std::max(a.realHigh, b.realHigh), a.maybeNan || b.maybeNan);
    }
    return integerRange(std::min(a.low, b.low), std::max(a.high, b.high));
}

ValueRange rangeOf(ProgramOp op, ProgramType to, ProgramType from, const ValueRange& a, const ValueRange& b) {
    if (op >= ProgramOp::Lt && op <= ProgramOp::Ne) {
        return from == ProgramType::Float
                   ? compared(op, a.realLow, a.realHigh, b.realLow, b.realHigh, a.maybeNan || b.maybeNan)
                   : compared(op, a.low, a.high, b.low, b.high, false);
    }
    switch (to) {
    case ProgramType::Bool:
        return logicalOperation(op, a, b);
    case ProgramType::Float:
        return floatOperation(op, a, b);
    default:
        return integerOperation(op, to, a, b);
    }
}

ValueRange castRange(ProgramType to, ProgramType from, const ValueRange& a) {
    const bool real = from == ProgramType::Float;
    switch (to) {
    case ProgramType::Bool: {
        const bool zero = real ? a.realLow <= 0 && a.realHigh >= 0 : a.low <= 0 && a.high >= 0;
        const bool onlyZero = real ? a.realLow == 0 && a.realHigh == 0 && !a.maybeNan : a.low == 0 && a.high == 0;
        return truth(zero, !onlyZero);
    }
    case ProgramType::Float: {
        const auto low = static_cast<double>(a.low);
        const auto high = static_cast<double>(a.high);
        return a.low >= -kExactInFloat && a.high <= kExactInFloat ? floatRange(low, high, false)
                                                                  : rounded(low, high, false);
    }
    default:
        break;
    }
    if (!real) {
        return fitted(to, a.low, a.high);
    }
    const auto whole = [&](double x) {
        return to == ProgramType::Int32 ? scalar::truncated<std::int32_t>(x) : scalar::truncated<std::int64_t>(x);
    };
    const ValueRange out = integerRange(whole(a.realLow), whole(a.realHigh));
    return a.maybeNan ? hull(to, out, exactRange(0)) : out;
}

} // namespace vitrine::kernels
