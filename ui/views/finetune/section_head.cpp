// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/section_head.h"

#include <QHBoxLayout>

namespace vitrine::ui {

SectionHead::SectionHead(const QString& title, QWidget* parent) : Surface(Fill::Panel, Top, parent) {
    setFixedHeight(24);
    row_ = new QHBoxLayout(this);
    row_->setContentsMargins(11, 1, 12, 0);
    row_->setSpacing(8);
    title_ = new TextLabel(title, TypeRole::Table, TextColor::Text1, true, this);
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    facts_->setElide(true);
    right_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    row_->addWidget(title_);
    row_->addWidget(facts_, 1);
    row_->addWidget(right_);
}

void SectionHead::addControl(QWidget* control) {
    row_->addWidget(control);
}

} // namespace vitrine::ui
