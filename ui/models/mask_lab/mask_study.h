// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A source read and checked: its programs, what sliders may move, what it captures, or what is wrong with it and where.
// Made on a worker, then immutable.

#include <QString>
#include <QStringList>
#include <memory>
#include <optional>

#include "ui/models/mask_lab/mask_map.h"
#include "ui/models/mask_lab/mask_source.h"

namespace vitrine::ui {

/// A number that a slider moves.
struct MaskNumber {
    QString name;
    double value = 0;     ///< in force
    double textValue = 0; ///< what the text says
    bool whole = true;
    double low = 0, high = 0; ///< of the slider; fields take others
};

/// A tensor that a program reads.
struct MaskCapture {
    enum class From : std::uint8_t { Editor, File, Text };
    QString name;
    QString type; ///< "int32 (16384)"
    From from = From::Text;
    std::vector<std::int64_t> lengths; ///< of documents that an editor holds
    QString values;                    ///< other numbers that an editor holds
    bool tooShort = false; ///< of documents: ends before the last position; later positions belong to the last one
};

/// Why there is no program.
struct MaskProblem {
    QString what;                 ///< one sentence, without the place
    int line = 0, column = 0;     ///< in the text, from 1; 0: elsewhere
    qsizetype begin = 0, end = 0; ///< UTF-16 units of the text; equal: no place
    QString undefined;            ///< a name that nobody gives: a captured tensor may
};

struct MaskStudy {
    MaskSource source;
    MaskSizes sizes;
    std::string maskName, scoreName; ///< chosen expressions; empty: none
    QStringList maskOffers, scoreOffers;
    MaskProgramPtr mask, score; ///< null: none
    std::vector<MaskNumber> numbers;
    std::vector<MaskCapture> captures;
    QStringList notes;
    std::optional<MaskProblem> problem;
    double seconds = 0; ///< of reading, without masks of blocks
    QString title() const;
};
using MaskStudyPtr = std::shared_ptr<const MaskStudy>;

/// Never throws for what the user wrote. `tensors`: of source.tensorsFile, which is read here.
MaskStudyPtr studyMask(const MaskSource& source, const MaskSizes& sizes);

/// q and k of the source's tensors file for scores; none when it has no such pair, or one of other sizes.
std::optional<MaskScores> fileScores(const MaskStudy& study);

/// The offset in UTF-16 units of a byte of a UTF-8 text.
qsizetype utf16Offset(std::string_view text, std::size_t byte);

} // namespace vitrine::ui
