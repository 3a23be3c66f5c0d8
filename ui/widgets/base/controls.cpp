// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/controls.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMessageBox>
#include <QPaintEvent>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

class SegmentButton final : public QAbstractButton {
public:
    SegmentButton(const QString& text, bool last, QWidget* parent) : QAbstractButton(parent), last_(last) {
        setText(text);
        setCheckable(true);
        setAutoExclusive(true);
        setAttribute(Qt::WA_Hover);
        setFocusPolicy(Qt::StrongFocus);
        setAccessibleName(text);
    }

    QSize sizeHint() const override {
        const int text = static_cast<int>(std::ceil(textWidth(this->text(), Theme::instance().font(TypeRole::Table))));
        return {text + 21, 24};
    }
    QSize minimumSizeHint() const override { return sizeHint(); } // other controls of a row give way

protected:
    void paintEvent(QPaintEvent*) override {
        const ThemeTokens& t = themeTokens();
        QPainter painter(this);
        const QRect inner = rect().adjusted(last_ ? 0 : 0, 1, 0, -1);
        if (isChecked()) {
            painter.fillRect(inner, t.selection);
        } else if (underMouse() && isEnabled()) {
            painter.fillRect(inner, t.hover);
        }
        if (!last_) {
            plumbline(painter, width() - 1, 1, height() - 1, t.line1);
        }
        const QColor color = !isEnabled() ? t.disabled : isChecked() ? t.text1 : t.text2;
        drawText(painter, rect(), Qt::AlignCenter, text(), color, Theme::instance().font(TypeRole::Table));
        if (hasFocus()) {
            painter.setPen(QPen(t.accent, 2));
            painter.drawRect(QRectF(rect()).adjusted(2, 3, -3, -3));
        }
    }

private:
    bool last_;
};

} // namespace

QColor textColor(TextColor color) {
    const ThemeTokens& t = themeTokens();
    switch (color) {
    case TextColor::Text1:
        return t.text1;
    case TextColor::Text2:
        return t.text2;
    case TextColor::Text3:
        return t.text3;
    case TextColor::Accent:
        return t.accent;
    case TextColor::Good:
        return t.good;
    case TextColor::Warn:
        return t.warn;
    case TextColor::Bad:
        return t.bad;
    }
    return t.text1;
}

TextLabel::TextLabel(const QString& text, TypeRole role, TextColor color, bool strong, QWidget* parent)
    : QLabel(text, parent), role_(role), color_(color), strong_(strong) {
    setTextFormat(Qt::PlainText);
    connect(&Theme::instance(), &Theme::changed, this, &TextLabel::restyle);
    restyle();
}

void TextLabel::setColor(TextColor color) {
    if (color_ != color) {
        color_ = color;
        restyle();
    }
}

void TextLabel::setStrong(bool on) {
    if (strong_ != on) {
        strong_ = on;
        restyle();
    }
}

void TextLabel::setElide(bool on) {
    elide_ = on;
    updateGeometry();
}

QSize TextLabel::minimumSizeHint() const {
    const QSize full = QLabel::minimumSizeHint();
    return elide_ ? QSize(24, full.height()) : full;
}

void TextLabel::restyle() {
    setFont(Theme::instance().font(role_, strong_));
    QPalette p = palette();
    p.setColor(QPalette::WindowText, textColor(color_));
    p.setColor(QPalette::Link, themeTokens().accent);
    setPalette(p);
}

void TextLabel::paintEvent(QPaintEvent* event) {
    if (!elide_) {
        QLabel::paintEvent(event);
        return;
    }
    QPainter painter(this);
    drawText(painter, contentsRect(), static_cast<int>(alignment()), text(), textColor(color_), font());
}

SegmentedControl::SegmentedControl(const QStringList& texts, QWidget* parent) : QWidget(parent) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(1, 0, 1, 0);
    row->setSpacing(0);
    for (int i = 0; i < texts.size(); ++i) {
        auto* button = new SegmentButton(texts[i], i + 1 == texts.size(), this);
        button->setChecked(i == 0);
        row->addWidget(button);
        buttons_.push_back(button);
        connect(button, &QAbstractButton::toggled, this, [this, i](bool on) {
            if (on && current_ != i) {
                current_ = i;
                emit currentChanged(i);
            }
        });
    }
    setFixedHeight(24);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void SegmentedControl::setCurrent(int index) {
    if (index >= 0 && index < count()) {
        buttons_[static_cast<std::size_t>(index)]->setChecked(true);
    }
}

void SegmentedControl::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(themeTokens().line1);
    painter.setBrush(themeTokens().panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
}

KeyHint::KeyHint(const QString& key, QWidget* parent) : QWidget(parent), key_(key) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setAttribute(Qt::WA_TransparentForMouseEvents);
}

void KeyHint::setAlarming(bool on) {
    alarming_ = on;
    update();
}

QSize KeyHint::sizeHint() const {
    return {static_cast<int>(textWidth(key_, Theme::instance().font(TypeRole::Axis))) + 10, 17};
}

void KeyHint::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(alarming_ ? t.bad : t.line1);
    painter.setBrush(alarming_ ? QColor(Qt::transparent) : t.panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    drawText(painter, rect(), Qt::AlignCenter, key_, alarming_ ? t.bad : t.text2,
             Theme::instance().font(TypeRole::Axis));
}

void drawRunBadge(QPainter& painter, const QRectF& rect, QChar letter, bool active) {
    const ThemeTokens& t = themeTokens();
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(!active                      ? t.line2
                     : letter == QLatin1Char('A') ? t.compareA
                     : letter == QLatin1Char('B') ? t.compareB
                                                  : t.text2);
    painter.drawRoundedRect(rect, 2, 2);
    painter.restore();
    drawText(painter, rect, Qt::AlignCenter, letter, t.window, Theme::instance().font(TypeRole::Axis, true));
}

void paintOverlayGround(QWidget* widget) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(widget);
    painter.fillRect(widget->rect(), t.panel);
    painter.setPen(t.line1);
    painter.drawRect(QRectF(widget->rect()).adjusted(0.5, 0.5, -0.5, -0.5));
}

DockHeader::DockHeader(const QString& title, QWidget* parent) : QWidget(parent) {
    row_ = new QHBoxLayout(this);
    row_->setContentsMargins(12, 0, 8, 1);
    row_->setSpacing(8);
    title_ = new TextLabel(title, TypeRole::Table, TextColor::Text1, true, this);
    title_->setElide(true);
    title_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    row_->addWidget(title_, 1);
    setFixedHeight(28);
}

void DockHeader::setTitle(const QString& title) {
    title_->setText(title);
}

void DockHeader::setCategory(std::optional<base::MemoryCategory> category) {
    category_ = category;
    row_->setContentsMargins(category ? 32 : 12, 0, 8, 1);
    update();
}

void DockHeader::addControl(QWidget* control) {
    row_->addWidget(control);
}

void DockHeader::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.panel);
    hairline(painter, 0, width(), height() - 1, t.line0);
    if (category_) {
        const int top = (height() - 12) / 2; // on whole pixels
        drawSwatch(painter, QRectF(12, top, 12, 12), t.category(*category_));
    }
}

QPushButton* iconButton(const QString& name, const QString& words, QWidget* parent) {
    auto* button = new QPushButton(parent);
    button->setIcon(icon(name));
    button->setFlat(true);
    button->setToolTip(words);
    button->setAccessibleName(words);
    button->setIconSize({14, 14});
    button->setFixedSize(22, 22);
    return button;
}

Surface::Surface(Fill fill, int edges, QWidget* parent) : QWidget(parent), fill_(fill), edges_(edges) {}

void Surface::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), fill_ == Fill::Window ? t.window : fill_ == Fill::Panel ? t.panel : t.canvas);
    if (edges_ & Top) {
        hairline(painter, 0, width(), 0, t.line1);
    }
    if (edges_ & Bottom) {
        hairline(painter, 0, width(), height() - 1, t.line1);
    }
    if (edges_ & Left) {
        plumbline(painter, 0, 0, height(), t.line1);
    }
    if (edges_ & Right) {
        plumbline(painter, width() - 1, 0, height(), t.line1);
    }
}

EmptyState::EmptyState(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->addStretch(1);
    text_ = new TextLabel({}, TypeRole::Body, TextColor::Text2, false, this);
    text_->setAlignment(Qt::AlignCenter);
    text_->setWordWrap(true);
    column->addWidget(text_, 0, Qt::AlignHCenter);
    column->addSpacing(12);
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(8);
    button_ = new QPushButton(this);
    other_ = new QPushButton(this);
    buttons->addStretch(1);
    buttons->addWidget(button_);
    buttons->addWidget(other_);
    buttons->addStretch(1);
    column->addLayout(buttons);
    column->addStretch(1);
    connect(button_, &QPushButton::clicked, this, [this] {
        if (action_) {
            action_();
        }
    });
    connect(other_, &QPushButton::clicked, this, [this] {
        if (otherAction_) {
            otherAction_();
        }
    });
    set({});
}

void EmptyState::set(const QString& text, const QString& button, std::function<void()> action) {
    text_->setText(text);
    // A wrapped label asks for the width of its longest word: give it a line of readable length.
    const double full = textWidth(text, Theme::instance().font(TypeRole::Body));
    text_->setFixedWidth(static_cast<int>(std::clamp(full + 8, 240.0, 560.0)));
    text_->setFixedHeight(std::max(18, text_->heightForWidth(text_->width())));
    action_ = std::move(action);
    button_->setText(button);
    button_->setVisible(!button.isEmpty());
    setOther({}, {});
}

void EmptyState::setOther(const QString& button, std::function<void()> action) {
    otherAction_ = std::move(action);
    other_->setText(button);
    other_->setVisible(!button.isEmpty());
}

QString EmptyState::text() const {
    return text_->text();
}

void EmptyState::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), themeTokens().canvas);
}

ErrorStrip::ErrorStrip(QWidget* parent, Tone tone) : QWidget(parent), tone_(tone) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(36, 0, 8, 0);
    row->setSpacing(8);
    sentence_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, this);
    sentence_->setElide(true);
    row->addWidget(sentence_, 1);
    detailsButton_ = new QPushButton(tr("Details"), this);
    setControlHeight(detailsButton_, 22);
    auto* copy = new QPushButton(tr("Copy"), this);
    setControlHeight(copy, 22);
    actionButton_ = new QPushButton(this);
    setControlHeight(actionButton_, 22);
    actionButton_->hide();
    row->addWidget(detailsButton_);
    row->addWidget(actionButton_);
    row->addWidget(copy);
    setFixedHeight(32);
    connect(actionButton_, &QPushButton::clicked, this, [this] {
        if (act_) {
            act_();
        }
    });
    connect(detailsButton_, &QPushButton::clicked, this,
            [this] { QMessageBox::information(this, tr("Details"), details_); });
    connect(copy, &QPushButton::clicked, this, [this] {
        QGuiApplication::clipboard()->setText(details_.isEmpty() ? sentence_->text()
                                                                 : sentence_->text() + QLatin1Char('\n') + details_);
    });
    hide();
}

void ErrorStrip::setTone(Tone tone) {
    tone_ = tone;
    update();
}

void ErrorStrip::setError(const QString& sentence, const QString& details) {
    sentence_->setText(sentence);
    sentence_->setToolTip(sentence);
    details_ = details;
    detailsButton_->setVisible(!details.isEmpty());
    setVisible(!sentence.isEmpty());
}

void ErrorStrip::setAction(const QString& text, std::function<void()> act) {
    actionButton_->setText(text);
    actionButton_->setVisible(!text.isEmpty());
    act_ = std::move(act);
}

QString ErrorStrip::sentence() const {
    return sentence_->text();
}

void ErrorStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), tone_ == Tone::Bad ? t.badFill : t.warnFill);
    painter.drawPixmap(QPointF(12, 8), iconPixmap(QStringLiteral("warning"), 16, tone_ == Tone::Bad ? t.bad : t.warn,
                                                  deviceRatio(painter)));
}

} // namespace vitrine::ui
