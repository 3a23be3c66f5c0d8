// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/number_field.h"

#include <QHBoxLayout>
#include <QLineEdit>

#include "ui/models/common/format.h"
#include "ui/models/mask_lab/mask_source.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

NumberField::NumberField(const QString& name, const QString& accessibleName, int width, int height, QWidget* parent)
    : QWidget(parent), high_(kLongestMask) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    label_ = new TextLabel(name, TypeRole::Table, TextColor::Text3, false, this);
    field_ = new QLineEdit(this);
    field_->setFixedWidth(width);
    field_->setAlignment(Qt::AlignRight);
    field_->setAccessibleName(accessibleName);
    field_->setToolTip(accessibleName);
    setControlHeight(field_, height);
    row->addWidget(label_);
    row->addWidget(field_);
    setFocusProxy(field_);
    connect(field_, &QLineEdit::editingFinished, this, &NumberField::take);
}

void NumberField::setRange(std::int64_t low, std::int64_t high) {
    low_ = low;
    high_ = high;
}

void NumberField::setValue(std::int64_t value) {
    value_ = value;
    field_->setText(countText(value));
}

void NumberField::take() {
    const QString text = field_->text().trimmed();
    const std::int64_t asked = text == QLatin1String("0") ? 0 : parseLength(text);
    const bool good = (asked > 0 || text == QLatin1String("0")) && asked >= low_ && asked <= high_;
    const bool other = good && asked != value_;
    setValue(good ? asked : value_);
    if (other) {
        emit changed(value_);
    }
}

} // namespace vitrine::ui
