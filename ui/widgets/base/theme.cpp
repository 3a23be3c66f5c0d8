// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/theme.h"

#include <QApplication>
#include <QEvent>
#include <QFile>
#include <QFontDatabase>
#include <QFontInfo>
#include <QFontMetricsF>
#include <QPalette>
#include <QToolTip>
#include <QWidget>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ui/widgets/base/style.h"

static void initThemeResources() {
    Q_INIT_RESOURCE(ui);
}

namespace vitrine::ui {

namespace {

QColor colorAt(const nlohmann::json& object, const std::string& key, const QString& name) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) {
        throw base::BadInput(name.toStdString() + ": " + key + ": colour is missing, write \"#RRGGBB\"");
    }
    const QColor color(QString::fromStdString(found->get<std::string>()));
    if (!color.isValid()) {
        throw base::BadInput(name.toStdString() + ": " + key + ": no colour, write \"#RRGGBB\"");
    }
    return color;
}

const nlohmann::json& objectAt(const nlohmann::json& object, const std::string& key, const QString& name) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_object()) {
        throw base::BadInput(name.toStdString() + ": " + key + ": object is missing, add it");
    }
    return *found;
}

Hatch hatchNamed(const std::string& text, const QString& name) {
    static const std::map<std::string, Hatch> kNames = {
        {"none", Hatch::None},
        {"back-diagonal", Hatch::BackDiagonal},
        {"horizontal", Hatch::Horizontal},
        {"forward-diagonal", Hatch::ForwardDiagonal},
        {"vertical", Hatch::Vertical},
        {"crossed-diagonal", Hatch::CrossedDiagonal},
        {"dots", Hatch::Dots},
        {"grid", Hatch::Grid},
    };
    const auto found = kNames.find(text);
    if (found == kNames.end()) {
        throw base::BadInput(name.toStdString() + ": hatch: unknown value \"" + text + "\", use back-diagonal or dots");
    }
    return found->second;
}

void readUi(const nlohmann::json& ui, ThemeTokens& t, const QString& name) {
    const std::pair<const char*, QColor*> fields[] = {
        {"window", &t.window},
        {"panel", &t.panel},
        {"canvas", &t.canvas},
        {"raised", &t.raised},
        {"hover", &t.hover},
        {"pressed", &t.pressed},
        {"band", &t.band},
        {"selection", &t.selection},
        {"line0", &t.line0},
        {"line1", &t.line1},
        {"line2", &t.line2},
        {"text1", &t.text1},
        {"text2", &t.text2},
        {"text3", &t.text3},
        {"disabled", &t.disabled},
        {"accent", &t.accent},
        {"accentFill", &t.accentFill},
        {"onAccent", &t.onAccent},
        {"good", &t.good},
        {"warn", &t.warn},
        {"bad", &t.bad},
        {"goodFill", &t.goodFill},
        {"warnFill", &t.warnFill},
        {"badFill", &t.badFill},
    };
    for (const auto& [key, target] : fields) {
        *target = colorAt(ui, key, name);
    }
}

double channel(double value) {
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& c) {
    return 0.2126 * channel(c.redF()) + 0.7152 * channel(c.greenF()) + 0.0722 * channel(c.blueF());
}

bool equalDigits(const QFont& font) {
    const QFontMetricsF metrics(font);
    const double zero = metrics.horizontalAdvance(QLatin1Char('0'));
    for (char digit = '1'; digit <= '9'; ++digit) {
        if (std::abs(metrics.horizontalAdvance(QLatin1Char(digit)) - zero) > 0.01) {
            return false;
        }
    }
    return true;
}

QString firstInstalled(const QStringList& families, const QString& fallback) {
    const QStringList installed = QFontDatabase::families();
    for (const QString& family : families) {
        if (installed.contains(family)) {
            return family;
        }
    }
    return fallback;
}

QPalette paletteOf(const ThemeTokens& t) {
    QPalette p;
    const auto all = [&p](QPalette::ColorRole role, const QColor& color) { p.setColor(QPalette::All, role, color); };
    all(QPalette::Window, t.window);
    all(QPalette::WindowText, t.text1);
    all(QPalette::Base, t.canvas);
    all(QPalette::AlternateBase, t.band);
    all(QPalette::Text, t.text1);
    all(QPalette::PlaceholderText, t.text3);
    all(QPalette::Button, t.raised);
    all(QPalette::ButtonText, t.text1);
    all(QPalette::BrightText, t.onAccent);
    all(QPalette::ToolTipBase, t.raised);
    all(QPalette::ToolTipText, t.text1);
    all(QPalette::Highlight, t.selection);
    all(QPalette::HighlightedText, t.text1);
    all(QPalette::Link, t.accent);
    all(QPalette::LinkVisited, t.accent);
    all(QPalette::Light, t.hover);
    all(QPalette::Midlight, t.hover);
    all(QPalette::Mid, t.line1);
    all(QPalette::Dark, t.line1);
    all(QPalette::Shadow, t.line1);
    for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
        p.setColor(QPalette::Disabled, role, t.disabled);
    }
    return p;
}

} // namespace

ThemeTokens parseThemeTokens(const QByteArray& bytes, const QString& name) {
    const nlohmann::json json = nlohmann::json::parse(bytes.toStdString(), nullptr, false);
    if (!json.is_object()) {
        throw base::BadInput(name.toStdString() + ": theme: no JSON object, reinstall the program's resources");
    }
    ThemeTokens t;
    t.name = QString::fromStdString(json.value("name", std::string("dark")));
    t.dark = t.name == QLatin1String("dark");
    readUi(objectAt(json, "ui", name), t, name);
    const nlohmann::json& categories = objectAt(json, "categories", name);
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const auto category = static_cast<base::MemoryCategory>(i);
        const nlohmann::json& entry = objectAt(categories, std::string(base::categoryName(category)), name);
        CategoryStyle& style = t.categories[static_cast<std::size_t>(i)];
        style.fill = colorAt(entry, "fill", name);
        style.ink = colorAt(entry, "ink", name);
        style.hatch = hatchNamed(entry.value("hatch", std::string("none")), name);
        style.tile = std::clamp(entry.value("tile", 6), 2, 32);
    }
    for (const char* set : {"blocks", "maskDifference", "requests", "syntax", "compare"}) {
        for (const auto& [key, value] : objectAt(json, set, name).items()) {
            t.sets[QLatin1String(set) + QLatin1Char('.') + QString::fromStdString(key)] =
                colorAt(objectAt(json, set, name), key, name);
        }
    }
    t.compareA = colorAt(objectAt(json, "compare", name), "a", name);
    t.compareB = colorAt(objectAt(json, "compare", name), "b", name);
    return t;
}

double contrastRatio(const QColor& a, const QColor& b) {
    const double x = luminance(a), y = luminance(b);
    return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

Theme& Theme::instance() {
    static Theme theme;
    return theme;
}

Theme::Theme() {
    initThemeResources();
    apply();
}

void Theme::install() {
    if (installed_) {
        return;
    }
    installed_ = true;
    systemDark_ = qApp->palette().color(QPalette::Window).lightness() < 128;
    const QFont system = QApplication::font();
    const bool platformTheme = !qEnvironmentVariableIsEmpty("XDG_CURRENT_DESKTOP");
    const QString fallback = firstInstalled(
        {QStringLiteral("Noto Sans"), QStringLiteral("Open Sans"), QStringLiteral("DejaVu Sans")}, system.family());
    family_ = platformTheme && equalDigits(system) ? system.family() : fallback;
    scale_ = platformTheme ? std::clamp(QFontInfo(system).pixelSize() / 13.0, 0.8, 2.0) : 1.0;
    monoFamily_ = firstInstalled({QStringLiteral("Noto Sans Mono")},
                                 QFontDatabase::systemFont(QFontDatabase::FixedFont).family());
    QApplication::setStyle(new VitrineStyle);
    qApp->installEventFilter(this);
    apply();
}

void Theme::setMode(Mode mode) {
    if (mode_ != mode) {
        mode_ = mode;
        apply();
    }
}

void Theme::apply() {
    const bool dark = mode_ == Mode::Dark || (mode_ == Mode::System && systemDark_);
    const QString path =
        dark ? QStringLiteral(":/vitrine/themes/dark.json") : QStringLiteral(":/vitrine/themes/light.json");
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        throw base::Internal("theme resource is missing: " + path.toStdString());
    }
    tokens_ = parseThemeTokens(file.readAll(), path);
    if (!installed_) {
        return;
    }
    applying_ = true;
    QApplication::setPalette(paletteOf(tokens_));
    QToolTip::setPalette(paletteOf(tokens_));
    QApplication::setFont(font(TypeRole::Table));
    QToolTip::setFont(font(TypeRole::Table));
    applying_ = false;
    emit changed();
    for (QWidget* widget : QApplication::allWidgets()) {
        widget->update();
    }
}

QFont Theme::font(TypeRole role, bool strong) const {
    static constexpr int kPixels[] = {11, 12, 13, 15, 20, 28};
    QFont font = family_.isEmpty() ? QFont() : QFont(family_);
    font.setPixelSize(std::max(8, static_cast<int>(std::lround(kPixels[static_cast<int>(role)] * scale_))));
    font.setWeight(strong || role == TypeRole::Title ? QFont::DemiBold : QFont::Normal);
    return font;
}

QFont Theme::monoFont(TypeRole role) const {
    QFont mono = font(role);
    mono.setWeight(QFont::Normal);
    mono.setFamily(monoFamily_.isEmpty() ? QStringLiteral("monospace") : monoFamily_);
    mono.setStyleHint(QFont::Monospace);
    return mono;
}

bool Theme::eventFilter(QObject* watched, QEvent* event) {
    const bool hint =
        event->type() == QEvent::ThemeChange || (watched == qApp && event->type() == QEvent::ApplicationPaletteChange);
    if (!applying_ && hint && mode_ == Mode::System) {
        // Qt 6.4 has no colour scheme: the platform's palette shows it. Ours hides it, so it goes for a moment.
        applying_ = true;
        QApplication::setPalette(QPalette());
        const bool dark = qApp->palette().color(QPalette::Window).lightness() < 128;
        applying_ = false;
        systemDark_ = dark;
        apply();
    }
    return QObject::eventFilter(watched, event);
}

} // namespace vitrine::ui
