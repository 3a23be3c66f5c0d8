// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any line of a judging program is a finite reward, a reply or an error, and exactly one of them.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "engine/rl/rewards/judge_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine::engine;
    const Judgement judgement = readJudgeReply({reinterpret_cast<const char*>(data), size}, 3);
    const int said = (judgement.reward ? 1 : 0) + (judgement.reply ? 1 : 0) + (judgement.error.empty() ? 0 : 1);
    if (said != 1 || judgement.id != 3 || (judgement.reward && !std::isfinite(*judgement.reward))) {
        std::abort();
    }
    return 0;
}
