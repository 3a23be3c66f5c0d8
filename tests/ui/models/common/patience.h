// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Include it after <QTest>: QTRY_ macros wait for a minute instead of Qt's five seconds, which a busy disk can take.

#include <QTest>

namespace vitrine::test {

constexpr int kPatienceMs = 60'000;

} // namespace vitrine::test

#undef QTRY_VERIFY
#undef QTRY_VERIFY2
#undef QTRY_COMPARE
#define QTRY_VERIFY(expression) QTRY_VERIFY_WITH_TIMEOUT(expression, vitrine::test::kPatienceMs)
#define QTRY_VERIFY2(expression, text) QTRY_VERIFY2_WITH_TIMEOUT(expression, text, vitrine::test::kPatienceMs)
#define QTRY_COMPARE(actual, expected) QTRY_COMPARE_WITH_TIMEOUT(actual, expected, vitrine::test::kPatienceMs)
