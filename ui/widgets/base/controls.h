// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Small controls that every view header, dock and page is made of.

#include <QAbstractButton>
#include <QAbstractScrollArea>
#include <QLabel>
#include <QStringList>
#include <QWidget>
#include <functional>

#include "ui/widgets/base/theme.h"

class QHBoxLayout;
class QPushButton;

namespace vitrine::ui {

enum class TextColor : std::uint8_t { Text1, Text2, Text3, Accent, Good, Warn, Bad };
QColor textColor(TextColor color);

/// A label in a type role and a theme colour; follows the theme. Elides at the right when it gets less room than it
/// wants and `elide` is set.
class TextLabel final : public QLabel {
    Q_OBJECT

public:
    explicit TextLabel(const QString& text = {}, TypeRole role = TypeRole::Table, TextColor color = TextColor::Text1,
                       bool strong = false, QWidget* parent = nullptr);
    void setColor(TextColor color);
    void setElide(bool on);
    void setStrong(bool on);
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void restyle();
    TypeRole role_;
    TextColor color_;
    bool strong_;
    bool elide_ = false;
};

/// Exclusive choices in one box: [Category|Layer|Op]. Left and Right move, Tab passes.
class SegmentedControl final : public QWidget {
    Q_OBJECT

public:
    explicit SegmentedControl(const QStringList& texts, QWidget* parent = nullptr);
    int current() const { return current_; }
    void setCurrent(int index);
    int count() const { return static_cast<int>(buttons_.size()); }
    QAbstractButton* button(int index) const { return buttons_[static_cast<std::size_t>(index)]; }

signals:
    void currentChanged(int index);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::vector<QAbstractButton*> buttons_;
    int current_ = 0;
};

/// A key in a small frame, beside the thing it triggers.
class KeyHint final : public QWidget {
    Q_OBJECT

public:
    explicit KeyHint(const QString& key, QWidget* parent = nullptr);
    void setAlarming(bool on);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString key_;
    bool alarming_ = false;
};

/// A letter on the colour of run A or B.
void drawRunBadge(QPainter& painter, const QRectF& rect, QChar letter, bool active);

/// The ground of what lies over the window: panel with a line around it.
void paintOverlayGround(QWidget* widget);

/// Header of a dock, 28 high: title at the left, further controls at the right.
class DockHeader final : public QWidget {
    Q_OBJECT

public:
    explicit DockHeader(const QString& title, QWidget* parent = nullptr);
    void setTitle(const QString& title);
    void setCategory(std::optional<base::MemoryCategory> category); ///< a swatch before the title
    void addControl(QWidget* control);
    QSize sizeHint() const override { return {200, 28}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QHBoxLayout* row_;
    TextLabel* title_;
    std::optional<base::MemoryCategory> category_;
};

/// A flat 22 px button with an icon alone; `name` is its tool tip and accessible name.
QPushButton* iconButton(const QString& icon, const QString& name, QWidget* parent);

/// A plain widget filled with a theme colour, with optional hairlines at its edges.
class Surface : public QWidget {
    Q_OBJECT

public:
    enum class Fill : std::uint8_t { Window, Panel, Canvas };
    enum Edge : std::uint8_t { None = 0, Top = 1, Bottom = 2, Left = 4, Right = 8 };
    explicit Surface(Fill fill, int edges = None, QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Fill fill_;
    int edges_;
};

/// Centred text of at most three lines with one action, or two: what a view shows when it has nothing to show.
class EmptyState final : public QWidget {
    Q_OBJECT

public:
    explicit EmptyState(QWidget* parent = nullptr);
    void set(const QString& text, const QString& button = {}, std::function<void()> action = {});
    /// Another action beside the first one, until set() is called again.
    void setOther(const QString& button, std::function<void()> action);
    QString text() const;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    TextLabel* text_;
    QPushButton *button_, *other_;
    std::function<void()> action_, otherAction_;
};

/// 32 px strip on badFill, or on warnFill for what is no error: icon, one sentence, Details and Copy.
class ErrorStrip final : public QWidget {
    Q_OBJECT

public:
    enum class Tone : std::uint8_t { Bad, Warn };
    explicit ErrorStrip(QWidget* parent = nullptr, Tone tone = Tone::Bad);
    void setTone(Tone tone);
    void setError(const QString& sentence, const QString& details = {});
    /// A button at the right that answers what the strip says; an empty text takes it away.
    void setAction(const QString& text, std::function<void()> act = {});
    QString sentence() const;
    QString details() const { return details_; }
    QPushButton* actionButton() const { return actionButton_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    TextLabel* sentence_;
    QPushButton *detailsButton_, *actionButton_;
    QString details_;
    std::function<void()> act_;
    Tone tone_;
};

} // namespace vitrine::ui
