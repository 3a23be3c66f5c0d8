// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The scored text of the Precision lab: tokens tinted by what a format changes, and what both formats say of one.

#include "ui/models/precision/tensor_reader.h"
#include "ui/models/precision/token_words.h"
#include "ui/widgets/base/controls.h"

class QStackedWidget;

namespace vitrine::ui {

class LabHead;
class ScoredText;
class TokenReadout;

class LabTextPane final : public Surface {
    Q_OBJECT

public:
    explicit LabTextPane(QWidget* parent);
    /// Formats by number. Without a scored text it offers to score one.
    void setText(PrecisionDataPtr shown, std::size_t a, std::size_t b);
    ScoredText* text() const { return text_; }
    TokenReadout* readout() const { return readout_; }

signals:
    void scoresWanted();

private:
    void updateFacts();
    void showToken(int token);

    PrecisionDataPtr data_;
    std::size_t a_ = 0, b_ = 0;
    LabHead* head_;
    QStackedWidget* pages_;
    ScoredText* text_;
    TokenReadout* readout_;
    EmptyState* notScored_;
};

} // namespace vitrine::ui
