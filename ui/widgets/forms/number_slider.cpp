// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/forms/number_slider.h"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QLocale>
#include <QPainter>
#include <QSlider>
#include <QStyle>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kSteps = 1000;
constexpr double kKnob = 6;

/// A thin groove, accent up to a round knob, hatched above a limit.
class LevelSlider final : public QSlider {
public:
    explicit LevelSlider(QWidget* parent) : QSlider(Qt::Horizontal, parent) {}
    void setLimit(std::optional<double> part) {
        limit_ = part;
        update();
    }

protected:
    void paintEvent(QPaintEvent*) override {
        const ThemeTokens& theme = themeTokens();
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        const double left = kKnob + 1, right = width() - kKnob - 1, middle = height() / 2.0;
        const double part =
            maximum() > minimum() ? static_cast<double>(sliderPosition() - minimum()) / (maximum() - minimum()) : 0;
        const double x = left + (right - left) * part;
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.line1);
        painter.drawRoundedRect(QRectF(left, middle - 2, right - left, 4), 2, 2);
        painter.setBrush(isEnabled() ? theme.accent : theme.disabled);
        painter.drawRoundedRect(QRectF(left, middle - 2, x - left, 4), 2, 2);
        if (limit_ && *limit_ < 1) {
            const double from = left + (right - left) * *limit_;
            painter.fillRect(QRectF(from, middle - 3, right - from, 6), theme.window);
            painter.fillRect(QRectF(from, middle - 3, right - from, 6),
                             hatchBrush(Hatch::ForwardDiagonal, 6, theme.bad, deviceRatio(painter)));
            painter.fillRect(QRectF(std::floor(from), middle - 8, 1, 16), theme.bad);
            painter.setPen(Qt::NoPen);
            painter.setBrush(theme.accent);
        }
        painter.setPen(QPen(hasFocus() ? theme.accent : theme.line2, hasFocus() ? 2 : 1));
        painter.setBrush(theme.dark ? theme.text1 : theme.raised);
        painter.drawEllipse(QPointF(x, middle), kKnob, kKnob);
    }

private:
    std::optional<double> limit_; ///< part of the groove
};

} // namespace

NumberSlider::NumberSlider(const QString& name, bool whole, QWidget* parent)
    : QWidget(parent), name_(name), whole_(whole), steps_(kSteps) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(10);
    auto* label = new TextLabel(name, TypeRole::Table, TextColor::Text2, false, this);
    const auto mono = [label] { label->setFont(Theme::instance().monoFont(TypeRole::Table)); };
    mono();
    connect(&Theme::instance(), &Theme::changed, label, mono); // after the label's own
    label->setElide(true);
    label->setToolTip(name);
    label_ = label;
    slider_ = new LevelSlider(this);
    slider_->setRange(0, kSteps);
    slider_->setAccessibleName(name);
    field_ = new QLineEdit(this);
    field_->setAlignment(Qt::AlignRight);
    field_->setAccessibleName(tr("%1, number").arg(name));
    field_->setFixedWidth(74);
    setControlHeight(field_, 22);
    row->addWidget(label_);
    row->addWidget(slider_, 1);
    row->addWidget(field_);
    setFixedHeight(30);
    connect(slider_, &QSlider::valueChanged, this, [this](int step) {
        if (!setting_) {
            const double value = low_ + (high_ - low_) * step / steps_;
            take(whole_ ? std::round(value) : value, true);
        }
    });
    connect(field_, &QLineEdit::editingFinished, this, [this] {
        if (const std::optional<double> value = readField()) {
            take(whole_ ? std::round(*value) : *value, true);
        } else {
            field_->setText(textOfValue());
        }
    });
}

std::optional<double> NumberSlider::readField() const {
    bool good = false;
    QString text = field_->text().trimmed().toLower();
    text.remove(QLatin1Char(',')).replace(QChar(0x2212), QLatin1Char('-'));
    const double unit = text.endsWith(QLatin1Char('k')) ? 1e3 : text.endsWith(QLatin1Char('m')) ? 1e6 : 1;
    const double value = QLocale::c().toDouble(unit > 1 ? text.chopped(1) : text, &good) * unit;
    return good && std::isfinite(value) && std::fabs(value) <= 2147483647.0 ? std::optional(value) : std::nullopt;
}

void NumberSlider::setName(const QString& name) {
    name_ = name;
    static_cast<TextLabel*>(label_)->setText(name);
    label_->setToolTip(name);
    slider_->setAccessibleName(name);
    field_->setAccessibleName(tr("%1, number").arg(name));
    label_->setMinimumWidth(QFontMetrics(label_->font()).horizontalAdvance(name_) + 2);
}

void NumberSlider::setInRow() {
    layout()->setContentsMargins(0, 0, 0, 0);
    const auto plain = [this] { label_->setFont(Theme::instance().font(TypeRole::Table)); };
    plain();
    connect(&Theme::instance(), &Theme::changed, label_, plain);
    setName(name_);
}

void NumberSlider::setSteps(int steps, int arrow, int page) {
    setting_ = true;
    steps_ = std::max(steps, 1);
    slider_->setRange(0, steps_);
    slider_->setSingleStep(arrow);
    slider_->setPageStep(page);
    setting_ = false;
    take(value_, false);
}

void NumberSlider::setLimit(std::optional<double> limit) {
    limit_ = limit;
    placeLimit();
}

void NumberSlider::placeLimit() {
    static_cast<LevelSlider*>(slider_)->setLimit(
        limit_ && high_ > low_ ? std::optional(std::clamp((*limit_ - low_) / (high_ - low_), 0.0, 1.0)) : std::nullopt);
}

int NumberSlider::nameHint() const {
    const QFont font = Theme::instance().monoFont(TypeRole::Table);
    return std::min(110, QFontMetrics(font).horizontalAdvance(name_) + 2);
}

void NumberSlider::setNameWidth(int width) {
    label_->setFixedWidth(width);
}

QString NumberSlider::textOfValue() const {
    return whole_ ? countText(std::llround(value_))
                  : QLocale::c().toString(value_, 'g', 5).replace(QLatin1Char('-'), QChar(0x2212));
}

void NumberSlider::take(double value, bool notify) {
    const bool other = value != value_;
    value_ = value;
    setting_ = true;
    if (!slider_->isSliderDown()) {
        slider_->setValue(high_ > low_ ? static_cast<int>(std::round((std::clamp(value, low_, high_) - low_) /
                                                                     (high_ - low_) * steps_))
                                       : 0);
    }
    setting_ = false;
    if (!field_->hasFocus() || notify) {
        field_->setText(textOfValue());
    }
    if (notify && other) {
        emit moved(value_);
    }
}

void NumberSlider::setValue(double value, double low, double high) {
    if (!slider_->isSliderDown()) {
        low_ = low;
        high_ = high;
        take(value, false);
        placeLimit();
    }
}

} // namespace vitrine::ui
