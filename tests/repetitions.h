// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How often a test with random input repeats: `ordinary` times, and a sixth of that under a sanitizer, where each
/// repetition takes several times as long.
template <class Integer> constexpr Integer repetitions(Integer ordinary) {
    return kSanitized ? (ordinary + 5) / 6 : ordinary;
}

/// How often such a test must meet what it is about: more than `ordinary` times, under a sanitizer more than 0 times.
template <class Integer> constexpr Integer moreThan(Integer ordinary) {
    return kSanitized ? 0 : ordinary;
}

/// The step of a loop over cases whose number decides what they are: under a sanitizer only every seventh case is run.
inline constexpr int kCaseStride = kSanitized ? 7 : 1;

} // namespace vitrine::test
