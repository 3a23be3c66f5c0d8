// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/result_panel.h"

#include <QVBoxLayout>

namespace vitrine::ui {

ResultPanel::ResultPanel(QWidget* parent) : QScrollArea(parent) {
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    content_ = new Surface(Surface::Fill::Panel, Surface::None, this);
    column_ = new QVBoxLayout(content_);
    column_->setContentsMargins(0, 0, 0, 0);
    column_->setSpacing(0);
    number_ = new TextLabel({}, TypeRole::Number, TextColor::Text1, false, content_);
    number_->setContentsMargins(12, 12, 12, 0);
    sentence_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, content_);
    sentence_->setContentsMargins(12, 0, 12, 14);
    sentence_->setWordWrap(true);
    column_->addWidget(number_);
    column_->addWidget(sentence_);
    setWidget(content_);
}

} // namespace vitrine::ui
