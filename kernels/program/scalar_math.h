// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Scalar arithmetic of programs, in one place for constant folding and the interpreter: integers wrap in their width,
// `//` and `%` round towards minus infinity (a division of integers by zero gives 0), shifts outside the width give 0
// or the sign. I is std::int32_t or std::int64_t, C float or double.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace vitrine::kernels::scalar {

template <class T> T add(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
        return a + b;
    }
}
template <class T> T sub(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    } else {
        return a - b;
    }
}
template <class T> T mul(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    } else {
        return a * b;
    }
}
template <class T> T neg(T a) {
    if constexpr (std::is_integral_v<T>) {
        return sub(T(0), a);
    } else {
        return -a;
    }
}

template <class I>
I floorDiv(I a, I b)
    requires std::is_integral_v<I>
{
    if (b == 0) {
        return 0;
    }
    if (b == -1) {
        return neg(a); // the lowest number has no positive twin
    }
    const I quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <class I>
I mod(I a, I b)
    requires std::is_integral_v<I>
{
    if (b == 0 || b == -1) {
        return 0;
    }
    const I rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <class C>
C mod(C a, C b)
    requires std::is_floating_point_v<C>
{
    const C rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class C>
C floorDiv(C a, C b)
    requires std::is_floating_point_v<C>
{
    if (b == 0) {
        return a / b;
    }
    // From the remainder, as Python: floor(a / b) is off by one where the quotient rounds up to an integer.
    const C rest = std::fmod(a, b);
    C quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) {
        quotient -= 1;
    }
    const C floored = std::floor(quotient);
    return quotient - floored > C(0.5) ? floored + 1 : floored;
}

template <class C>
C power(C base, C exponent)
    requires std::is_floating_point_v<C>
{
    return std::pow(base, exponent);
}
template <class I>
I power(I base, I exponent)
    requires std::is_integral_v<I>
{
    if (exponent < 0) {
        return 0;
    }
    I result = 1;
    for (; exponent > 0; exponent = static_cast<I>(exponent >> 1)) {
        if ((exponent & 1) != 0) {
            result = mul(result, base);
        }
        base = mul(base, base);
    }
    return result;
}

template <class I> I shiftLeft(I a, I by) {
    using U = std::make_unsigned_t<I>;
    return by < 0 || by >= std::numeric_limits<U>::digits ? I(0) : static_cast<I>(static_cast<U>(a) << by);
}
template <class I> I shiftRight(I a, I by) {
    using U = std::make_unsigned_t<I>;
    return by < 0 || by >= std::numeric_limits<U>::digits ? (a < 0 ? I(-1) : I(0)) : static_cast<I>(a >> by);
}

template <class T> T sign(T a) {
    return a > 0 ? T(1) : a < 0 ? T(-1) : T(a == 0 ? T(0) : a);
}
template <class T> T absolute(T a) {
    if constexpr (std::is_integral_v<T>) {
        return a < 0 ? neg(a) : a;
    } else {
        return std::fabs(a);
    }
}
/// NaN wins, as in PyTorch.
template <class T> T minimum(T a, T b) {
    return a < b || a != a ? a : b; // NOLINT(misc-redundant-expression): a != a asks for NaN
}
template <class T> T maximum(T a, T b) {
    return a > b || a != a ? a : b; // NOLINT(misc-redundant-expression)
}

template <class C> C sigmoid(C a) {
    return C(1) / (C(1) + std::exp(-a));
}

/// Truncates; NaN gives 0, what does not fit the nearest number that does.
template <class I, class C> I truncated(C a) {
    if (!(a == a)) { // NOLINT(misc-redundant-expression)
        return 0;
    }
    constexpr auto kLow = static_cast<double>(std::numeric_limits<I>::min());
    constexpr double kHigh = -kLow; // one above the highest number
    const auto wide = static_cast<double>(a);
    return wide <= kLow    ? std::numeric_limits<I>::min()
           : wide >= kHigh ? std::numeric_limits<I>::max()
                           : static_cast<I>(wide);
}

} // namespace vitrine::kernels::scalar
