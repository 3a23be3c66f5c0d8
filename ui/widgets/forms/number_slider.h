// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A named number with a slider and a field: "WINDOW [----o-----] 2,048". The field takes numbers beyond the slider's
// ends, and "600k".

#include <QWidget>
#include <optional>

class QLineEdit;
class QSlider;

namespace vitrine::ui {

class NumberSlider final : public QWidget {
    Q_OBJECT

public:
    NumberSlider(const QString& name, bool whole, QWidget* parent = nullptr);

    const QString& name() const { return name_; }
    /// REQUIRES that the slider stands in a row.
    void setName(const QString& name);
    bool whole() const { return whole_; }
    double value() const { return value_; }
    /// From outside: nothing is emitted. The ends do not move while the slider is held.
    void setValue(double value, double low, double high);
    /// Width of the name, so that sliders stand under each other.
    void setNameWidth(int width);
    int nameHint() const;
    /// The name in the font of other words, and no room at the ends: in a row of a form.
    void setInRow();
    /// Whole steps of the slider: how many, and what an arrow and a page key make.
    void setSteps(int steps, int arrow, int page);
    /// Values above this one are shown as not possible, though the knob may go there.
    void setLimit(std::optional<double> limit);
    std::optional<double> limit() const { return limit_; }
    QSlider* slider() const { return slider_; }
    QLineEdit* field() const { return field_; }

signals:
    void moved(double value);

private:
    void take(double value, bool notify);
    std::optional<double> readField() const; ///< nothing where it is no number
    void placeLimit();
    QString textOfValue() const;

    QString name_;
    bool whole_;
    double value_ = 0, low_ = 0, high_ = 1;
    std::optional<double> limit_;
    int steps_;
    QWidget* label_;
    QSlider* slider_;
    QLineEdit* field_;
    bool setting_ = false;
};

} // namespace vitrine::ui
