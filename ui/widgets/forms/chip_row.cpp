// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/forms/chip_row.h"

#include <QGridLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <exception>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kChipHeight = 22, kChipsInRow = 5, kFieldWidth = 58;
constexpr const char* kIndex = "chipIndex";

} // namespace

ChipRow::ChipRow(const QString& name, Add add, QWidget* parent)
    : QWidget(parent), add_(std::move(add)), grid_(new QGridLayout), field_(new QLineEdit(this)),
      problem_(new TextLabel({}, TypeRole::Axis, TextColor::Bad, false, this)) {
    setAccessibleName(name);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addWidget(new TextLabel(name, TypeRole::Table, TextColor::Text2, false, this));
    grid_->setContentsMargins(0, 0, 0, 0);
    grid_->setSpacing(6);
    grid_->setColumnStretch(kChipsInRow + 1, 1);
    column->addLayout(grid_);
    column->addWidget(problem_);
    problem_->setWordWrap(true);
    problem_->hide();
    field_->setPlaceholderText(tr("+ value"));
    field_->setAccessibleName(tr("One more value of %1").arg(name));
    field_->setToolTip(tr("A value, several with commas between them, or a row of numbers such as 1e-5..4e-4 x2"));
    field_->setFixedWidth(kFieldWidth);
    setControlHeight(field_, kChipHeight);
    connect(field_, &QLineEdit::returnPressed, this, &ChipRow::take);
    rebuild();
}

void ChipRow::setValues(const QStringList& values) {
    if (values_ != values) {
        values_ = values;
        rebuild();
    }
}

void ChipRow::setEditable(bool on) {
    if (editable_ != on) {
        editable_ = on;
        rebuild();
    }
}

QString ChipRow::problem() const {
    return problem_->isHidden() ? QString() : problem_->text();
}

void ChipRow::rebuild() {
    while (QLayoutItem* item = grid_->takeAt(0)) {
        if (item->widget() != field_ && item->widget() != nullptr) {
            item->widget()->deleteLater(); // it may be the chip whose key is being handled
            item->widget()->hide();
        }
        delete item;
    }
    for (qsizetype i = 0; i < values_.size(); ++i) {
        auto* chip = new QPushButton(values_[i], this);
        setControlHeight(chip, kChipHeight);
        chip->setProperty(kIndex, i);
        chip->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
        chip->setFocusPolicy(editable_ ? Qt::StrongFocus : Qt::NoFocus); // else it is words alone
        chip->setToolTip(editable_ ? tr("Delete takes it away; a click too") : QString());
        chip->installEventFilter(this);
        connect(chip, &QPushButton::clicked, this, [this, i] { removeAt(i); });
        grid_->addWidget(chip, static_cast<int>(i) / kChipsInRow, static_cast<int>(i) % kChipsInRow);
        chip->show();
    }
    field_->setVisible(editable_);
    const int at = static_cast<int>(values_.size());
    grid_->addWidget(field_, at / kChipsInRow, at % kChipsInRow);
}

void ChipRow::take() {
    QString wrong;
    try {
        values_ = add_(values_, field_->text().trimmed());
        field_->clear();
        rebuild();
        field_->setFocus();
        emit valuesChanged();
    } catch (const std::exception& error) {
        wrong = QString::fromUtf8(error.what());
    }
    setAlarming(field_, !wrong.isEmpty());
    problem_->setText(wrong);
    problem_->setVisible(!wrong.isEmpty());
}

void ChipRow::removeAt(qsizetype index) {
    if (editable_ && values_.size() > 1) {
        values_.removeAt(index);
        rebuild();
        emit valuesChanged();
    }
}

bool ChipRow::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Delete || key == Qt::Key_Backspace) {
            removeAt(watched->property(kIndex).toLongLong());
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace vitrine::ui
