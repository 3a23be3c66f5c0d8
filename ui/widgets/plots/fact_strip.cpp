// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/fact_strip.h"

#include <QPainter>
#include <QPushButton>
#include <QStringList>
#include <utility>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kStripHeight = 28;
constexpr double kPairGap = 16, kWordGap = 6;

} // namespace

FactStrip::FactStrip(const QString& title, const QString& link, QWidget* parent)
    : QWidget(parent), title_(title), link_(new QPushButton(link, this)) {
    setFixedHeight(kStripHeight);
    setControlHeight(link_, 22);
    setAccessibleName(title);
}

void FactStrip::setFacts(std::vector<std::pair<QString, QString>> facts) {
    facts_ = std::move(facts);
    setToolTip(asText());
    setAccessibleDescription(asText());
    update();
}

QString FactStrip::asText() const {
    QStringList words;
    for (const auto& [name, value] : facts_) {
        words << name + QLatin1Char(' ') + value;
    }
    return words.join(QStringLiteral(", "));
}

void FactStrip::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    const QSize wanted = link_->sizeHint();
    link_->setGeometry(width() - wanted.width() - 12, (height() - wanted.height()) / 2, wanted.width(),
                       wanted.height());
}

void FactStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Table);
    QPainter painter(this);
    painter.fillRect(rect(), t.panel);
    hairline(painter, 0, width(), height() - 1, t.line0);
    const double limit = link_->x() - 12;
    const auto write = [&](double x, const QString& text, const QColor& color) {
        const QRectF box(x, 0, limit - x, height() - 1);
        return box.width() < 12 ? limit : x + drawText(painter, box, Qt::AlignVCenter, text, color, font);
    };
    double x = write(12, title_, t.text2) + kPairGap;
    for (const auto& [name, value] : facts_) {
        x = write(x, name, t.text3) + kWordGap;
        x = write(x, value, t.text1) + kPairGap;
    }
}

} // namespace vitrine::ui
