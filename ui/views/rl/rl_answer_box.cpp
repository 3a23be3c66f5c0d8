// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_answer_box.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/plots/scored_text.h"
#include "ui/widgets/plots/token_bars.h"

namespace vitrine::ui {

namespace {

constexpr int kAnswerText = 72; ///< least height, with the legend

} // namespace

RlAnswerBox::RlAnswerBox(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 4, 0, 4);
    column->setSpacing(2);
    auto* row = new QHBoxLayout;
    row->setContentsMargins(12, 0, 12, 0);
    head_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, true, this);
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    row->addWidget(head_);
    row->addStretch(1);
    row->addWidget(facts_);
    column->addLayout(row);
    text_ = new ScoredText(tr("Tokens of the answer"), this);
    text_->setMinimumHeight(kAnswerText);
    column->addWidget(text_, 100);
    token_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    token_->setElide(true);
    token_->setContentsMargins(12, 0, 12, 0);
    column->addWidget(token_);
    bars_ = new TokenBars(tr("Difference of each token"), this);
    column->addWidget(bars_);
    nothing_ =
        new TextLabel(tr("The tokens of this answer were not kept."), TypeRole::Table, TextColor::Text3, false, this);
    nothing_->setContentsMargins(12, 2, 12, 2);
    column->addWidget(nothing_);
    column->addStretch(1); // where there is no text
    connect(text_, &ScoredText::tokenShown, this, [this](int token) {
        bars_->setCurrentBar(token);
        showToken(token);
    });
    connect(bars_, &TokenBars::barShown, this, [this](int bar) { showToken(bar); });
    connect(bars_, &TokenBars::itemClicked, text_, &ScoredText::setCurrentToken);
    setAnswer(nullptr, 0, std::nullopt);
}

const RlSample* RlAnswerBox::sample() const {
    return samples_ != nullptr && index_ && group_ < samples_->groups.size() &&
                   *index_ < samples_->groups[group_].samples.size()
               ? &samples_->groups[group_].samples[*index_]
               : nullptr;
}

void RlAnswerBox::setAnswer(const RlSamplesPtr& samples, std::size_t group, std::optional<std::size_t> index) {
    if (samples != nullptr && samples == samples_ && group == group_ && index == index_) {
        return; // a token may be chosen in it
    }
    samples_ = samples;
    group_ = group;
    index_ = index;
    const RlSample* shown = sample();
    setVisible(shown != nullptr);
    if (shown == nullptr) {
        return;
    }
    const bool kept = !shown->said.empty();
    head_->setText(tr("Answer %1").arg(shown->place + 1));
    QStringList facts{tr("%1 tokens").arg(countText(shown->tokens))};
    if (std::isfinite(shown->reward)) {
        facts << tr("reward %1").arg(QString::number(shown->reward, 'g', 3));
    }
    if (std::isfinite(shown->judgeSeconds)) {
        facts << tr("judged in %1 s").arg(QString::number(shown->judgeSeconds, 'f', 2));
    }
    facts_->setText(facts.join(QStringLiteral(", ")));
    for (QWidget* part : {static_cast<QWidget*>(text_), static_cast<QWidget*>(token_), static_cast<QWidget*>(bars_)}) {
        part->setVisible(kept);
    }
    nothing_->setVisible(!kept);
    std::vector<ScoredText::Token> tokens;
    std::vector<double> differences;
    for (const RlSampleToken& token : shown->said) {
        tokens.push_back({token.text, static_cast<float>(token.difference())});
        differences.push_back(token.difference());
    }
    text_->setScale(RlSamples::tintScale(*shown), true, tr("trainer − rollout"));
    text_->setTokens(std::move(tokens), [this](int token) {
        const RlSample* spoken = sample();
        return spoken != nullptr && token >= 0 ? rlTokenText(*spoken, static_cast<std::size_t>(token)) : QString();
    });
    bars_->setBars(std::move(differences), tr("trainer higher"), tr("rollout higher"));
    showToken(-1);
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
}

QString RlAnswerBox::tokenText() const {
    return token_->text();
}

QString RlAnswerBox::headText() const {
    return head_->text();
}

} // namespace vitrine::ui
