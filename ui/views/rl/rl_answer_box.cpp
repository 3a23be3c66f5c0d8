// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_answer_box.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QVBoxLayout>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/plots/scored_text.h"
#include "ui/widgets/plots/token_bars.h"

namespace vitrine::ui {

namespace {

constexpr int kAnswerText = 47; ///< least height, with the legend: a line
constexpr int kLowText = 25;
constexpr int kUsualLines = 3, kLowLines = 1;
constexpr int kTokenLine = 350, kTokenHeight = 16;
constexpr int kBadgeSide = 14, kBadgeRoom = 20;

} // namespace

RlAnswerBox::RlAnswerBox(QWidget* parent) : QWidget(parent), row_(new QHBoxLayout) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 4, 0, 4);
    column->setSpacing(2);
    head_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, true, this);
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    facts_->setElide(true);
    facts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row_->addWidget(head_);
    row_->addWidget(facts_, 1);
    column->addLayout(row_);
    text_ = new ScoredText(tr("Tokens of the answer"), this);
    text_->setMinimumHeight(kAnswerText);
    text_->setUsualLines(kUsualLines);
    column->addWidget(text_, 100);
    token_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    token_->setElide(true);
    token_->setContentsMargins(12, 0, 12, 0);
    column->addWidget(token_);
    bars_ = new TokenBars(tr("Difference of each token"), this);
    column->addWidget(bars_);
    nothing_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    nothing_->setWordWrap(true);
    nothing_->setContentsMargins(12, 2, 12, 2);
    column->addWidget(nothing_);
    column->addStretch(1); // where there is no text
    connect(text_, &ScoredText::tokenShown, this, [this](int token) {
        bars_->setCurrentBar(token);
        showToken(token);
    });
    connect(bars_, &TokenBars::barShown, this, [this](int bar) { showToken(bar); });
    connect(bars_, &TokenBars::itemClicked, text_, &ScoredText::setCurrentToken);
    setLetter({});
    setAnswer(nullptr, 0, std::nullopt);
}

void RlAnswerBox::setLetter(QChar letter) {
    letter_ = letter;
    row_->setContentsMargins(letter.isNull() ? 12 : 12 + kBadgeRoom, 0, 12, 0);
    update();
}

void RlAnswerBox::paintEvent(QPaintEvent*) {
    if (!letter_.isNull()) {
        QPainter painter(this);
        drawRunBadge(painter, QRectF(12, head_->geometry().center().y() - 6.5, kBadgeSide, kBadgeSide), letter_, true);
    }
}

/// The numbers of a token take two lines where one would cut the last of them.
void RlAnswerBox::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    const bool narrow = width() < kTokenLine;
    token_->setElide(!narrow);
    token_->setWordWrap(narrow);
    token_->setFixedHeight(narrow ? 2 * kTokenHeight : kTokenHeight);
}

const RlSample* RlAnswerBox::sample() const {
    return samples_ != nullptr && index_ && group_ < samples_->groups.size() &&
                   *index_ < samples_->groups[group_].samples.size()
               ? &samples_->groups[group_].samples[*index_]
               : nullptr;
}

/// Its tokens, or why there are none.
void RlAnswerBox::showParts(bool answer, bool tokens) {
    setVisible(answer);
    for (QWidget* part : {static_cast<QWidget*>(text_), static_cast<QWidget*>(token_), static_cast<QWidget*>(bars_)}) {
        part->setVisible(tokens);
    }
    nothing_->setVisible(!tokens);
}

void RlAnswerBox::setMissing(QChar letter, const QString& why) {
    samples_.reset();
    index_.reset();
    setLetter(letter);
    head_->setText(tr("No answer"));
    facts_->setText({});
    nothing_->setText(why);
    showParts(true, false);
}

void RlAnswerBox::setAnswer(const RlSamplesPtr& samples, std::size_t group, std::optional<std::size_t> index,
                            QChar letter) {
    setLetter(letter);
    const bool same = samples != nullptr && samples == samples_ && group == group_ && index == index_;
    samples_ = samples;
    group_ = group;
    index_ = index;
    const RlSample* shown = sample();
    showParts(shown != nullptr, shown != nullptr && !shown->said.empty());
    if (shown == nullptr) {
        return;
    }
    head_->setText(tr("Answer %1").arg(shown->place + 1));
    facts_->setText(rlAnswerFacts(*shown, !letter.isNull()));
    facts_->setToolTip(facts_->text());
    nothing_->setText(tr("The tokens of this answer were not kept."));
    if (same) {
        return; // a token may be chosen in it
    }
    std::vector<ScoredText::Token> tokens;
    std::vector<double> differences;
    for (const RlSampleToken& token : shown->said) {
        tokens.push_back({token.text, static_cast<float>(token.difference())});
        differences.push_back(token.difference());
    }
    text_->setTokens(std::move(tokens), [this](int token) {
        const RlSample* spoken = sample();
        return spoken != nullptr && token >= 0 ? rlTokenText(*spoken, static_cast<std::size_t>(token)) : QString();
    });
    bars_->setBars(std::move(differences), tr("trainer higher"), tr("rollout higher"));
    showToken(-1);
}

void RlAnswerBox::setScale(double largest) {
    text_->setScale(largest, true, tr("trainer − rollout"));
}

void RlAnswerBox::setLow(bool low, bool legend, bool tall) {
    text_->setMinimumHeight(legend ? kAnswerText : kLowText);
    text_->setLegendShown(legend);
    text_->setUsualLines(low && !tall ? kLowLines : kUsualLines);
    bars_->setLow(low);
}

/// Without one, the token that differs most.
void RlAnswerBox::showToken(int token) {
    const RlSample* shown = sample();
    if (shown == nullptr || shown->said.empty()) {
        token_->setText({});
        return;
    }
    if (token < 0) {
        token = text_->currentToken();
    }
    if (token < 0) {
        double most = -1;
        for (std::size_t i = 0; i < shown->said.size(); ++i) {
            if (const double size = std::abs(shown->said[i].difference()); size > most) {
                most = size;
                token = static_cast<int>(i);
            }
        }
    }
    token_->setText(token >= 0 ? rlTokenText(*shown, static_cast<std::size_t>(token)) : QString());
    token_->setToolTip(token_->text());
}

QString RlAnswerBox::tokenText() const {
    return token_->text();
}

QString RlAnswerBox::headText() const {
    return letter_.isNull() ? head_->text() : QStringLiteral("%1: %2").arg(letter_).arg(head_->text());
}

QString RlAnswerBox::missingText() const {
    return nothing_->isHidden() ? QString() : nothing_->text();
}

} // namespace vitrine::ui
