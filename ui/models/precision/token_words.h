// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a format does to the tokens of the text that was scored. Pure functions; any thread.

#include <QString>

#include "engine/workload/precision/precision_result.h"

namespace vitrine::ui {

/// How much more likely a token of the text is under A than under B, in nats; 0 for token 0.
float tokenChange(const engine::PrecisionResult& result, std::size_t a, std::size_t b, std::size_t token);

/// What stands under the text for one token.
struct TokenWords {
    QString token;      ///< "“5”"
    QString place;      ///< "token 1,104, id 20"
    QString b, a;       ///< "B −0.31"
    QString difference; ///< "difference −0.44"
    QString next;       ///< "Next best in both: “4”"
    QString shares;     ///< "B: 73.3 % and 14.6 %, A: 47.2 % and 31.0 %"
};
TokenWords tokenWords(const engine::PrecisionResult& result, std::size_t a, std::size_t b, std::size_t token);

} // namespace vitrine::ui
