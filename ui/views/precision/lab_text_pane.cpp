// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/lab_text_pane.h"

#include <QStackedWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/precision/keep_list.h"
#include "ui/views/precision/lab_head.h"
#include "ui/views/precision/token_readout.h"
#include "ui/widgets/plots/scored_text.h"

namespace vitrine::ui {

namespace {

QVBoxLayout* textColumn(QWidget* parent) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

} // namespace

LabTextPane::LabTextPane(QWidget* parent) : Surface(Fill::Canvas, Right, parent) {
    QVBoxLayout* column = textColumn(this);
    column->setContentsMargins(0, 0, 1, 0);
    head_ = new LabHead(tr("Change of log-probability, A \u2212 B, nats"), this);
    pages_ = new QStackedWidget(this);
    auto* scored = new QWidget(pages_);
    QVBoxLayout* lines = textColumn(scored);
    text_ = new ScoredText(tr("Text, tinted by change of log-probability"), scored);
    readout_ = new TokenReadout(scored);
    lines->addWidget(text_, 1);
    lines->addWidget(readout_);
    notScored_ = new EmptyState(pages_);
    pages_->addWidget(scored);
    pages_->addWidget(notScored_);
    column->addWidget(head_);
    column->addWidget(pages_, 1);
    connect(text_, &ScoredText::tokenShown, this, &LabTextPane::showToken);
    connect(text_, &ScoredText::viewChanged, this, &LabTextPane::updateFacts);
}

void LabTextPane::setText(PrecisionDataPtr shown, std::size_t a, std::size_t b) {
    data_ = std::move(shown);
    a_ = a;
    b_ = b;
    const engine::LabText& text = data_->result.text;
    const bool scored = text.scored() > 0;
    pages_->setCurrentIndex(scored ? 0 : 1);
    if (!scored) {
        head_->setFacts({});
        if (data_->live) {
            notScored_->set(tr("The run goes on. Its text appears when all formats have scored it."));
            return;
        }
        const std::optional<double> seconds = data_->secondsToScore;
        const QString tokens = tr("Score %1 tokens").arg(countText(kTokensToScore));
        notScored_->set(tr("Not scored."),
                        seconds ? tr("%1, %2").arg(tokens, durationText(static_cast<base::TimeNs>(*seconds * 1e9)))
                                : tokens,
                        [this] { emit scoresWanted(); });
        return;
    }
    std::vector<ScoredText::Token> tokens;
    tokens.reserve(text.ids.size());
    for (std::size_t i = 0; i < text.ids.size(); ++i) {
        tokens.push_back({QString::fromStdString(text.pieces[i]), tokenChange(data_->result, a_, b_, i)});
    }
    text_->setTokens(std::move(tokens), [this](int token) {
        const TokenWords words = tokenWords(data_->result, a_, b_, static_cast<std::size_t>(token));
        return tr("%1, %2: %3, %4, %5").arg(words.token, words.place, words.b, words.a, words.difference);
    });
    if (text_->currentToken() < 0) { // the place that has changed most is what one looks for
        int most = 1;
        for (std::size_t i = 1; i < text.ids.size(); ++i) {
            const auto change = [&](std::size_t token) { return std::abs(tokenChange(data_->result, a_, b_, token)); };
            most = change(i) > change(static_cast<std::size_t>(most)) ? static_cast<int>(i) : most;
        }
        text_->setCurrentToken(most);
    }
    showToken(text_->currentToken());
    updateFacts();
}

void LabTextPane::updateFacts() {
    if (!data_ || data_->result.text.scored() == 0) {
        return;
    }
    const auto [first, last] = text_->inView();
    head_->setFacts(tr("tokens %1 to %2 of %3")
                        .arg(countText(first), countText(std::max(first, last - 1)), countText(text_->tokenCount())));
}

void LabTextPane::showToken(int token) {
    readout_->setWords(data_ && token >= 0 ? tokenWords(data_->result, a_, b_, static_cast<std::size_t>(token))
                                           : TokenWords());
}

} // namespace vitrine::ui
