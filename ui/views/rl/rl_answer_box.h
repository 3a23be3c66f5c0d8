// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One answer: its tokens tinted by how far trainer and sampler are apart, the same as bars, and the numbers of the
// token that is pointed at in either.

#include <QWidget>

#include "ui/models/rl/rl_samples.h"

namespace vitrine::ui {

class ScoredText;
class TextLabel;
class TokenBars;

class RlAnswerBox final : public QWidget {
    Q_OBJECT

public:
    explicit RlAnswerBox(QWidget* parent);

    /// `index`: of the group's samples; nothing: there is none.
    void setAnswer(const RlSamplesPtr& samples, std::size_t group, std::optional<std::size_t> index);
    ScoredText* text() const { return text_; }
    TokenBars* bars() const { return bars_; }
    QString tokenText() const;
    QString headText() const;

private:
    const RlSample* sample() const;
    void showToken(int token);

    TextLabel *head_, *facts_, *token_, *nothing_;
    ScoredText* text_;
    TokenBars* bars_;
    RlSamplesPtr samples_;
    std::size_t group_ = 0;
    std::optional<std::size_t> index_;
};

} // namespace vitrine::ui
