// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One answer: its tokens tinted by how far trainer and sampler are apart, the same as bars, and the numbers of the
// token that is pointed at in either. Beside the answer of another run it has the letter of its own.

#include <QWidget>

#include "ui/models/rl/rl_samples.h"

class QHBoxLayout;

namespace vitrine::ui {

class ScoredText;
class TextLabel;
class TokenBars;

class RlAnswerBox final : public QWidget {
    Q_OBJECT

public:
    explicit RlAnswerBox(QWidget* parent);

    /// `index`: of the group's samples; nothing: there is none. `letter`: of the run, null where it is the only one.
    void setAnswer(const RlSamplesPtr& samples, std::size_t group, std::optional<std::size_t> index, QChar letter = {});
    /// Why there is no answer of a run.
    void setMissing(QChar letter, const QString& why);
    const RlSample* sample() const;
    /// The difference of the last tint: of two answers beside each other the same.
    void setScale(double largest);
    /// Under another answer: lower, and without a legend where that one has it. `tall`: with several lines even so.
    void setLow(bool low, bool legend, bool tall);
    ScoredText* text() const { return text_; }
    TokenBars* bars() const { return bars_; }
    QString tokenText() const;
    QString headText() const; ///< "Answer 1", "A: Answer 1"
    QString missingText() const;

protected:
    void paintEvent(QPaintEvent* event) override; ///< the letter
    void resizeEvent(QResizeEvent* event) override;

private:
    void setLetter(QChar letter);
    void showParts(bool answer, bool tokens);
    void showToken(int token);

    QHBoxLayout* row_;
    TextLabel *head_, *facts_, *token_, *nothing_;
    ScoredText* text_;
    TokenBars* bars_;
    RlSamplesPtr samples_;
    std::size_t group_ = 0;
    std::optional<std::size_t> index_;
    QChar letter_;
};

} // namespace vitrine::ui
