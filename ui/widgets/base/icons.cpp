// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/icons.h"

#include <QFile>
#include <QIconEngine>
#include <QPainter>
#include <QPixmapCache>
#include <QSvgRenderer>
#include <cmath>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

QPixmap rendered(const QString& name, const QSize& pixels, const QColor& color) {
    const QString key = QStringLiteral("vitrine-icon %1 %2 %3").arg(name).arg(pixels.width()).arg(color.rgba());
    QPixmap pixmap;
    if (QPixmapCache::find(key, &pixmap)) {
        return pixmap;
    }
    QFile file(QStringLiteral(":/vitrine/icons/%1.svg").arg(name));
    pixmap = QPixmap(pixels);
    pixmap.fill(Qt::transparent);
    if (file.open(QIODevice::ReadOnly)) {
        QByteArray svg = file.readAll();
        svg.replace("#000000", color.name().toLatin1());
        QSvgRenderer renderer(svg);
        QPainter painter(&pixmap);
        renderer.render(&painter);
    }
    QPixmapCache::insert(key, pixmap);
    return pixmap;
}

class TintedIcon final : public QIconEngine {
public:
    TintedIcon(QString name, std::optional<QColor> color) : name_(std::move(name)), color_(color) {}

    QIconEngine* clone() const override { return new TintedIcon(*this); }

    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override {
        const double dpr = deviceRatio(*painter);
        QPixmap picture = rendered(name_, rect.size() * dpr, tint(mode, state));
        picture.setDevicePixelRatio(dpr);
        painter->drawPixmap(rect.topLeft(), picture);
    }

    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
        return rendered(name_, size, tint(mode, state));
    }

private:
    QColor tint(QIcon::Mode mode, QIcon::State state) const {
        const ThemeTokens& theme = themeTokens();
        if (mode == QIcon::Disabled) {
            return theme.disabled;
        }
        if (color_) {
            return *color_;
        }
        return state == QIcon::On || mode == QIcon::Active || mode == QIcon::Selected ? theme.text1 : theme.text2;
    }

    QString name_;
    std::optional<QColor> color_;
};

} // namespace

QIcon icon(const QString& name, std::optional<QColor> color) {
    return QIcon(new TintedIcon(name, color));
}

QPixmap iconPixmap(const QString& name, int side, const QColor& color, double dpr) {
    const int pixels = std::max(1, static_cast<int>(std::lround(side * dpr)));
    QPixmap picture = rendered(name, QSize(pixels, pixels), color);
    picture.setDevicePixelRatio(dpr);
    return picture;
}

} // namespace vitrine::ui
