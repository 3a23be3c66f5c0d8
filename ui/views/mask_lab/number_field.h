// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A named field for one length or count: "q [16,384]". Takes "16k" and "1M"; what is no number goes back to what it
// was.

#include <QWidget>
#include <cstdint>

class QLineEdit;

namespace vitrine::ui {

class TextLabel;

class NumberField final : public QWidget {
    Q_OBJECT

public:
    NumberField(const QString& name, const QString& accessibleName, int width, int height, QWidget* parent = nullptr);

    void setValue(std::int64_t value);
    std::int64_t value() const { return value_; }
    void setRange(std::int64_t low, std::int64_t high);
    QLineEdit* field() const { return field_; }

signals:
    void changed(qint64 value);

private:
    void take();
    TextLabel* label_;
    QLineEdit* field_;
    std::int64_t value_ = -1, low_ = 1, high_ = 1;
};

} // namespace vitrine::ui
