// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Colours, fonts and sizes of the whole program. Tokens come from resources/themes/{dark,light}.json; painters take a
// ThemeTokens and nothing else, so that they can be tested without a window. GUI thread only.

#include <QColor>
#include <QFont>
#include <QObject>
#include <QString>
#include <array>
#include <map>
#include <optional>

#include "base/trace.h"

class QPalette;

namespace vitrine::ui {

enum class Hatch : std::uint8_t {
    None,
    BackDiagonal,
    ForwardDiagonal,
    CrossedDiagonal,
    Horizontal,
    Vertical,
    Dots,
    Grid
};

struct CategoryStyle {
    QColor fill;
    QColor ink; ///< label colour on the fill
    Hatch hatch = Hatch::None;
    int tile = 6; ///< px
};

struct ThemeTokens {
    QString name; ///< "dark" or "light"
    bool dark = true;
    QColor window, panel, canvas, raised, hover, pressed, band, selection;
    QColor line0, line1, line2, text1, text2, text3, disabled;
    QColor accent, accentFill, onAccent, good, warn, bad, goodFill, warnFill, badFill;
    std::array<CategoryStyle, base::kCategoryCount> categories;
    QColor compareA, compareB;
    std::map<QString, QColor> sets; ///< "blocks.full", "maskDifference.onlyA", "requests.queued", ...

    const CategoryStyle& category(base::MemoryCategory c) const { return categories[static_cast<std::size_t>(c)]; }
};

/// Reads a theme file. Throws base::BadInput that names what is missing or wrong.
ThemeTokens parseThemeTokens(const QByteArray& json, const QString& name);

/// WCAG 2 contrast ratio of two opaque colours, 1 to 21.
double contrastRatio(const QColor& a, const QColor& b);

/// Type roles: pixel sizes at 96 dpi, scaled with the system font.
enum class TypeRole : std::uint8_t { Axis, Table, Body, Title, Sentence, Number };

class Theme final : public QObject {
    Q_OBJECT

public:
    enum class Mode : std::uint8_t { System, Light, Dark };

    static Theme& instance();

    /// Installs style, palette and fonts on the application. Called once after QApplication is there.
    void install();
    Mode mode() const { return mode_; }
    void setMode(Mode mode);
    const ThemeTokens& tokens() const { return tokens_; }

    QFont font(TypeRole role, bool strong = false) const;
    QFont monoFont(TypeRole role) const;

signals:
    void changed();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    Theme();
    void apply();

    Mode mode_ = Mode::System;
    bool systemDark_ = false;
    bool applying_ = false;
    bool installed_ = false;
    ThemeTokens tokens_;
    QString family_, monoFamily_;
    double scale_ = 1.0;
};

inline const ThemeTokens& themeTokens() {
    return Theme::instance().tokens();
}

} // namespace vitrine::ui
