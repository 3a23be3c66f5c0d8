// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Why a mask allows or blocks one element: its conditions with the values that decided them.

#include <QString>
#include <vector>

#include "ui/models/mask_lab/mask_map.h"

namespace vitrine::ui {

struct MaskReason {
    QString text;   ///< as the source writes it: "q_idx - kv_idx < WINDOW"
    QString values; ///< "64 < 2,048", "4 is not 3"
    bool holds = false;
    bool decides = false; ///< without it the element would be allowed instead of blocked, or the other way round
    int depth = 0;
    kernels::ProgramSpan span;
};

struct MaskReasons {
    bool allowed = true;
    std::vector<MaskReason> reasons; ///< comparisons and other conditions, in the order of the program
    QString score;                   ///< what score_mod makes of a score of 0; empty: there is none
    int deciding = -1;               ///< index of the reason whose line is shown; -1: none alone
    QString sentence;                ///< "blocked by doc_id[q_idx] == doc_id[kv_idx] (4 is not 3)"
};

/// `mask` and `score` may be null.
MaskReasons maskReasons(const MaskProgram* mask, const MaskProgram* score, const kernels::ProgramRow& row,
                        std::int64_t key);

/// The first line of the span in `text`, from 1; 0 when the span does not lie in it.
int lineOfSpan(const kernels::Program& program, const kernels::ProgramSpan& span, const std::string& text);

} // namespace vitrine::ui
