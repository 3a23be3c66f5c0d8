// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/notice_bar.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QPushButton>
#include <utility>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

NoticeBar::NoticeBar(Tone tone, std::vector<Button> buttons, QWidget* parent) : QWidget(parent), tone_(tone) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(tone == Tone::Warning ? 36 : 12, 0, 8, 0);
    row->setSpacing(8);
    sentence_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, this);
    sentence_->setElide(true);
    row->addWidget(sentence_, 1);
    for (Button& button : buttons) {
        auto* made = new QPushButton(button.text, this);
        setControlHeight(made, 22);
        connect(made, &QPushButton::clicked, this, [action = std::move(button.action)] { action(); });
        row->addWidget(made);
        buttons_.push_back(made);
    }
    setFixedHeight(32);
    hide();
}

void NoticeBar::say(const QString& sentence) {
    sentence_->setText(sentence);
    sentence_->setToolTip(sentence);
    setVisible(!sentence.isEmpty());
}

QString NoticeBar::sentence() const {
    return sentence_->text();
}

void NoticeBar::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), tone_ == Tone::Warning ? t.badFill : t.panel);
    if (tone_ == Tone::Warning) {
        painter.drawPixmap(QPointF(12, 8), iconPixmap(QStringLiteral("warning"), 16, t.bad, deviceRatio(painter)));
    }
    hairline(painter, 0, width(), height() - 1, t.line1);
}

} // namespace vitrine::ui
