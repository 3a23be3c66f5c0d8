// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Bases of plots that have no shared time axis: a focus frame, an accessible chart whose value is the readout, and a
// picture that is painted once and kept until data, size, device ratio or theme change.

#include <QImage>
#include <QWidget>

namespace vitrine::ui {

class PlotWidget : public QWidget {
    Q_OBJECT

public:
    PlotWidget(const QString& title, QWidget* parent);

    const QString& title() const { return title_; }
    void setTitle(const QString& title);
    /// What a screen reader says: the values at the plot's cursor.
    virtual QString spoken() const { return {}; }

signals:
    void readoutChanged(const QString& text); ///< of the pointer or the keyboard's cursor; empty: none

protected:
    void paintFocus(QPainter& painter) const;
    /// Informs assistive technology and the status bar.
    void announce();
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    QString title_;
};

class PicturePlot : public PlotWidget {
    Q_OBJECT

public:
    PicturePlot(const QString& title, QWidget* parent);
    void invalidate();
    /// The plot without cursor and focus, at any size and ratio.
    virtual QImage picture(const QSizeF& size, double dpr) const = 0;

protected:
    virtual void paintOver(QPainter&) {}
    void paintEvent(QPaintEvent* event) override;

private:
    QImage cache_;
    bool dirty_ = true;
};

/// A transparent image of a logical size at a device ratio, filled with a colour.
QImage plotCanvas(const QSizeF& size, double dpr, const QColor& fill);

} // namespace vitrine::ui
