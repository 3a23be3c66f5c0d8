// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The program's style: Fusion with flat controls, the theme's metrics and the theme's focus frame.

#include <QProxyStyle>

namespace vitrine::ui {

class VitrineStyle final : public QProxyStyle {
    Q_OBJECT

public:
    VitrineStyle();

    int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                  QStyleHintReturn* data) const override;
    QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                           const QWidget* widget) const override;
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override;
    void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
    void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                            const QWidget* widget) const override;
    QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl sub,
                         const QWidget* widget) const override;
};

/// Height of buttons, combo boxes and fields: 26; 24 in view headers and 22 in docks, set per widget.
void setControlHeight(QWidget* widget, int height);
/// Room at the right of a button's words for something that lies over it.
void setExtraWidth(QWidget* button, int width);
/// The one primary button of a page.
void setPrimary(QWidget* button, bool primary = true);
/// A button with a `bad` outline.
void setAlarming(QWidget* button, bool alarming = true);

} // namespace vitrine::ui
