// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/style.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QPainter>
#include <QPushButton>
#include <QStyleFactory>
#include <QStyleOption>
#include <QToolBar>
#include <QWidget>

#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style_paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

using namespace stylepaint;

namespace {

constexpr int kControlHeight = 26;

int controlHeight(const QWidget* widget) {
    const QVariant height = widget != nullptr ? widget->property(kHeightProperty) : QVariant();
    return height.isValid() ? height.toInt() : kControlHeight;
}

} // namespace

VitrineStyle::VitrineStyle() : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))) {}

int VitrineStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
    switch (metric) {
    case PM_ToolBarItemSpacing:
        return 0;
    case PM_ToolBarItemMargin:
    case PM_ToolBarFrameWidth:
        return 0;
    case PM_IndicatorWidth:
    case PM_IndicatorHeight:
        return 14;
    case PM_CheckBoxLabelSpacing:
        return 6;
    case PM_SmallIconSize:
    case PM_ButtonIconSize:
        return 16;
    case PM_SplitterWidth:
    case PM_DockWidgetSeparatorExtent:
        return 1;
    case PM_DockWidgetFrameWidth:
        return 0;
    case PM_ScrollBarExtent:
        return 10;
    case PM_MenuBarPanelWidth:
        return 0;
    case PM_MenuBarVMargin:
        return 0;
    case PM_MenuBarHMargin:
        return 8;
    case PM_MenuBarItemSpacing:
        return 0;
    case PM_DefaultFrameWidth:
        return 1;
    case PM_TabBarTabShiftVertical:
    case PM_TabBarTabShiftHorizontal:
    case PM_TabBarBaseHeight:
    case PM_TabBarBaseOverlap:
        return 0;
    case PM_TabBarTabHSpace:
        return 20;
    case PM_TabBarTabVSpace:
        return 10;
    case PM_ButtonShiftHorizontal:
    case PM_ButtonShiftVertical:
        return 0;
    case PM_TreeViewIndentation:
        return 16;
    default:
        return QProxyStyle::pixelMetric(metric, option, widget);
    }
}

int VitrineStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                            QStyleHintReturn* data) const {
    switch (hint) {
    case SH_ItemView_ShowDecorationSelected:
        return 1;
    case SH_ItemView_ActivateItemOnSingleClick:
        return 0;
    case SH_EtchDisabledText:
    case SH_DitherDisabledText:
        return 0;
    case SH_ToolTip_WakeUpDelay:
        return 300;
    case SH_Widget_Animation_Duration:
        return 0;
    case SH_ScrollBar_Transient:
        return 0;
    case SH_ComboBox_Popup:
        return 0;
    case SH_UnderlineShortcut:
        return 0;
    default:
        return QProxyStyle::styleHint(hint, option, widget, data);
    }
}

QSize VitrineStyle::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                                     const QWidget* widget) const {
    QSize result = QProxyStyle::sizeFromContents(type, option, size, widget);
    switch (type) {
    case CT_PushButton: {
        const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option);
        const bool pictured = button != nullptr && !button->icon.isNull();
        const bool worded = button != nullptr && !button->text.isEmpty();
        const int text = worded ? button->fontMetrics.horizontalAdvance(button->text) : 0;
        const int height = controlHeight(widget);
        if (!worded && pictured) {
            return {height, height};
        }
        const int extra = widget != nullptr ? widget->property(kExtraProperty).toInt() : 0;
        return {text + 22 + (pictured ? 22 : 0) + extra, height};
    }
    case CT_ComboBox: {
        result.setHeight(controlHeight(widget));
        if (const auto* combo = qobject_cast<const QComboBox*>(widget)) {
            int widest = 0;
            for (int i = 0; i < combo->count(); ++i) {
                widest = std::max(widest, combo->fontMetrics().horizontalAdvance(combo->itemText(i)));
            }
            result.setWidth(std::max(result.width(), std::min(widest, 260) + 34));
        }
        break;
    }
    case CT_LineEdit:
    case CT_SpinBox:
        result.setHeight(controlHeight(widget));
        break;
    case CT_HeaderSection:
        result.setHeight(24);
        break;
    case CT_ItemViewItem:
        result.setHeight(std::max(24, size.height()));
        break;
    case CT_MenuBarItem:
        result = QSize(size.width() + 18, 24);
        break;
    case CT_MenuItem:
        if (result.height() > 10) {
            result.setHeight(std::max(26, result.height()));
        }
        break;
    default:
        break;
    }
    return result;
}

void VitrineStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                                 const QWidget* widget) const {
    const ThemeTokens& t = themeTokens();
    switch (element) {
    case PE_PanelButtonCommand:
        paintButton(option, painter, widget);
        return;
    case PE_PanelButtonTool: {
        const bool on = option->state & State_On;
        if (on || option->state & (State_MouseOver | State_Sunken)) {
            const QColor fill = on ? t.selection : option->state & State_Sunken ? t.pressed : t.hover;
            roundedBox(painter, option->rect, fill, fill);
        }
        return;
    }
    case PE_IndicatorCheckBox:
        paintCheckBox(option, painter);
        return;
    case PE_FrameFocusRect: {
        if (qobject_cast<const QAbstractButton*>(widget) != nullptr) {
            focusFrame(painter, option->rect);
        }
        return;
    }
    case PE_PanelLineEdit:
    case PE_FrameLineEdit: {
        if (element == PE_PanelLineEdit && widget != nullptr &&
            qobject_cast<const QComboBox*>(widget->parentWidget())) {
            return;
        }
        const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
        if (frame != nullptr && frame->lineWidth <= 0) {
            painter->fillRect(option->rect, option->palette.brush(QPalette::Base));
            return;
        }
        roundedBox(painter, option->rect, t.canvas, flag(widget, kAlarmProperty) ? t.bad : t.line1);
        if (option->state & State_HasFocus) {
            focusFrame(painter, option->rect);
        }
        return;
    }
    case PE_Frame: {
        // Filled from the outer edges: at broken device ratios what lies inside covers half a line.
        const QRect& box = option->rect;
        const QColor line = flag(widget, kAlarmProperty) ? t.bad : t.line1;
        for (const QRect& edge :
             {QRect(box.left(), box.top(), box.width(), 1), QRect(box.left(), box.bottom(), box.width(), 1),
              QRect(box.left(), box.top(), 1, box.height()), QRect(box.right(), box.top(), 1, box.height())}) {
            painter->fillRect(edge, line);
        }
        return;
    }
    case PE_FrameStatusBarItem:
    case PE_PanelStatusBar:
    case PE_PanelToolBar:
    case PE_FrameTabBarBase:
    case PE_IndicatorToolBarSeparator:
        return;
    case PE_IndicatorHeaderArrow:
        return; // part of the label
    case PE_IndicatorBranch: {
        if (option->state & State_Children) {
            const int side = 10;
            const QPoint at = option->rect.center() - QPoint(side / 2 - 1, side / 2);
            painter->drawPixmap(at, iconPixmap(option->state & State_Open ? QStringLiteral("chevron-down")
                                                                          : QStringLiteral("chevron-right"),
                                               side, t.text3, deviceRatio(*painter)));
        }
        return;
    }
    case PE_PanelTipLabel:
        painter->fillRect(option->rect, t.raised);
        painter->setPen(t.line1);
        painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
        return;
    default:
        QProxyStyle::drawPrimitive(element, option, painter, widget);
    }
}

void VitrineStyle::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                               const QWidget* widget) const {
    const ThemeTokens& t = themeTokens();
    switch (element) {
    case CE_MenuBarEmptyArea:
        painter->fillRect(option->rect, t.window);
        return;
    case CE_MenuBarItem: {
        const auto* item = qstyleoption_cast<const QStyleOptionMenuItem*>(option);
        if (item == nullptr) {
            break;
        }
        const bool open = item->state & (State_Selected | State_Sunken);
        painter->fillRect(item->rect, open ? t.hover : t.window);
        painter->setPen(item->state & State_Enabled ? (open ? t.text1 : t.text2) : t.disabled);
        painter->setFont(Theme::instance().font(TypeRole::Table));
        painter->drawText(item->rect, Qt::AlignCenter | Qt::TextHideMnemonic, item->text);
        return;
    }
    case CE_ToolBar:
        return;
    case CE_PushButtonLabel: {
        QStyleOptionButton copy(*qstyleoption_cast<const QStyleOptionButton*>(option));
        if (flag(widget, kPrimaryProperty) && copy.state & State_Enabled) {
            copy.palette.setColor(QPalette::ButtonText, t.onAccent);
        } else if (flag(widget, kAlarmProperty)) {
            copy.palette.setColor(QPalette::ButtonText, t.bad);
        }
        copy.rect.adjust(0, 0, widget != nullptr ? -widget->property(kExtraProperty).toInt() : 0, 0);
        QProxyStyle::drawControl(element, &copy, painter, widget);
        return;
    }
    case CE_ComboBoxLabel: {
        const auto* combo = qstyleoption_cast<const QStyleOptionComboBox*>(option);
        if (combo == nullptr || combo->editable || !combo->currentIcon.isNull()) {
            break;
        }
        const QRect room = subControlRect(CC_ComboBox, combo, SC_ComboBoxEditField, widget);
        drawText(*painter, QRectF(room).adjusted(1, 0, 0, 0), Qt::AlignVCenter, combo->currentText,
                 combo->state & State_Enabled ? t.text1 : t.disabled,
                 widget != nullptr ? widget->font() : Theme::instance().font(TypeRole::Table));
        return;
    }
    case CE_HeaderEmptyArea:
        painter->fillRect(option->rect, option->palette.brush(QPalette::Base));
        return;
    case CE_HeaderSection: {
        painter->fillRect(option->rect, option->palette.brush(QPalette::Base));
        hairline(*painter, option->rect.left(), option->rect.right() + 1, option->rect.bottom(), t.line0);
        return;
    }
    case CE_HeaderLabel: {
        const auto* header = qstyleoption_cast<const QStyleOptionHeader*>(option);
        if (header == nullptr) {
            break;
        }
        const QString arrow = header->sortIndicator == QStyleOptionHeader::None       ? QString()
                              : header->sortIndicator == QStyleOptionHeader::SortDown ? QStringLiteral(" ▴")
                                                                                      : QStringLiteral(" ▾");
        drawText(*painter, QRectF(header->rect).adjusted(4, 0, -4, 0), static_cast<int>(header->textAlignment),
                 header->text + arrow, t.text3, Theme::instance().font(TypeRole::Axis));
        return;
    }
    case CE_Splitter:
        painter->fillRect(option->rect, t.line1);
        return;
    case CE_TabBarTabShape:
        if (const auto* tab = qstyleoption_cast<const QStyleOptionTab*>(option)) {
            paintTab(tab, painter);
        }
        return;
    case CE_RubberBand:
        painter->fillRect(option->rect, withAlpha(t.accent, 0.2));
        return;
    default:
        break;
    }
    QProxyStyle::drawControl(element, option, painter, widget);
}

void VitrineStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                      const QWidget* widget) const {
    if (control == CC_ScrollBar) {
        if (const auto* slider = qstyleoption_cast<const QStyleOptionSlider*>(option)) {
            paintScrollBar(slider, painter, subControlRect(control, option, SC_ScrollBarSlider, widget));
            return;
        }
    }
    if (control == CC_ComboBox) {
        if (const auto* combo = qstyleoption_cast<const QStyleOptionComboBox*>(option)) {
            paintComboBox(combo, painter, widget);
            return;
        }
    }
    QProxyStyle::drawComplexControl(control, option, painter, widget);
}

QRect VitrineStyle::subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl sub,
                                   const QWidget* widget) const {
    if (control == CC_ScrollBar) {
        const auto* slider = qstyleoption_cast<const QStyleOptionSlider*>(option);
        if (slider != nullptr) {
            const bool flat = slider->orientation == Qt::Horizontal;
            const int length = flat ? slider->rect.width() : slider->rect.height();
            const int range = slider->maximum - slider->minimum;
            const int thumb = range > 0 ? std::clamp(static_cast<int>(static_cast<qint64>(length) * slider->pageStep /
                                                                      (range + slider->pageStep)),
                                                     24, std::max(24, length))
                                        : length;
            const int at = sliderPositionFromValue(slider->minimum, slider->maximum, slider->sliderPosition,
                                                   length - thumb, slider->upsideDown);
            const auto part = [&](int from, int size) {
                return flat ? QRect(slider->rect.left() + from, slider->rect.top(), size, slider->rect.height())
                            : QRect(slider->rect.left(), slider->rect.top() + from, slider->rect.width(), size);
            };
            switch (sub) {
            case SC_ScrollBarSlider:
                return part(at, thumb);
            case SC_ScrollBarGroove:
                return slider->rect;
            case SC_ScrollBarSubPage:
                return part(0, at);
            case SC_ScrollBarAddPage:
                return part(at + thumb, length - at - thumb);
            default:
                return {};
            }
        }
    }
    if (control == CC_ComboBox && (sub == SC_ComboBoxEditField)) {
        return option->rect.adjusted(8, 1, -22, -1);
    }
    return QProxyStyle::subControlRect(control, option, sub, widget);
}

void setControlHeight(QWidget* widget, int height) {
    widget->setProperty(kHeightProperty, height);
    widget->setFixedHeight(height);
}

void setExtraWidth(QWidget* button, int width) {
    button->setProperty(kExtraProperty, width);
    button->updateGeometry();
}

void setPrimary(QWidget* button, bool primary) {
    button->setProperty(kPrimaryProperty, primary);
    button->update();
}

void setAlarming(QWidget* button, bool alarming) {
    button->setProperty(kAlarmProperty, alarming);
    button->update();
}

} // namespace vitrine::ui
