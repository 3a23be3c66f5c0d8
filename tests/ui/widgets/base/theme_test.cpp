// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The contrast table of the theme is recomputed from the JSON files.
#include "ui/widgets/base/theme.h"

#include <QFile>
#include <QTest>
#include <map>

#include "base/error.h"
#include "base/resource_path.h"

using namespace vitrine;
using ui::contrastRatio;

class ThemeTest final : public QObject {
    Q_OBJECT

    static ui::ThemeTokens tokens(const QString& name) {
        QFile file(QString::fromStdString(base::resourcePath("themes/" + name.toStdString() + ".json")));
        [&] { QVERIFY(file.open(QIODevice::ReadOnly)); }();
        return ui::parseThemeTokens(file.readAll(), file.fileName());
    }

private slots:
    void textContrast_data() {
        QTest::addColumn<QString>("theme");
        QTest::addColumn<double>("least");
        QTest::newRow("dark") << QStringLiteral("dark") << 4.54;
        QTest::newRow("light") << QStringLiteral("light") << 4.60;
    }

    void textContrast() {
        QFETCH(QString, theme);
        QFETCH(double, least);
        const ui::ThemeTokens t = tokens(theme);
        const std::map<QString, QColor> grounds = {
            {"window", t.window}, {"panel", t.panel},     {"canvas", t.canvas},       {"raised", t.raised},
            {"hover", t.hover},   {"pressed", t.pressed}, {"selection", t.selection}, {"band", t.band}};
        const std::map<QString, QColor> texts = {{"text1", t.text1},   {"text2", t.text2}, {"text3", t.text3},
                                                 {"accent", t.accent}, {"good", t.good},   {"warn", t.warn},
                                                 {"bad", t.bad}};
        double smallest = 21;
        for (const auto& [ground, under] : grounds) {
            for (const auto& [text, over] : texts) {
                if (text == QLatin1String("text3") &&
                    (ground == QLatin1String("pressed") || ground == QLatin1String("selection"))) {
                    continue; // not an allowed pair: text2 stands there
                }
                const double ratio = contrastRatio(over, under);
                smallest = std::min(smallest, ratio);
                QVERIFY2(ratio >= 4.5, qPrintable(QStringLiteral("%1 on %2: %3").arg(text, ground).arg(ratio)));
            }
        }
        QVERIFY2(std::abs(smallest - least) < 0.011, qPrintable(QString::number(smallest)));
        for (const auto& [text, fill] : {std::pair{t.good, t.goodFill}, {t.warn, t.warnFill}, {t.bad, t.badFill}}) {
            QVERIFY(contrastRatio(text, fill) >= 4.5);
            QVERIFY(contrastRatio(t.text1, fill) >= 11.0);
            QVERIFY(contrastRatio(t.text2, fill) >= 7.0);
        }
        QVERIFY(contrastRatio(t.onAccent, t.accentFill) >= 4.5);
        for (const QColor& ground : {t.window, t.panel, t.canvas, t.raised}) {
            QVERIFY(contrastRatio(t.line2, ground) >= 3.3);
        }
    }

    void knownValues() {
        const ui::ThemeTokens dark = tokens(QStringLiteral("dark")), light = tokens(QStringLiteral("light"));
        QVERIFY(std::abs(contrastRatio(dark.text1, dark.window) - 14.7) < 0.06);
        QVERIFY(std::abs(contrastRatio(light.text3, light.hover) - 4.72) < 0.006);
        QVERIFY(std::abs(contrastRatio(dark.onAccent, dark.accentFill) - 4.73) < 0.006);
    }

    void categories_data() { textContrast_data(); }

    void categories() {
        QFETCH(QString, theme);
        const ui::ThemeTokens t = tokens(theme);
        for (int i = 0; i < base::kCategoryCount; ++i) {
            const ui::CategoryStyle& style = t.categories[static_cast<std::size_t>(i)];
            const QString name = QString::fromUtf8(base::categoryName(static_cast<base::MemoryCategory>(i)).data());
            QVERIFY2(contrastRatio(style.fill, t.canvas) >= 3.0, qPrintable(name));
            QVERIFY2(contrastRatio(style.fill, style.ink) >= 4.5, qPrintable(name));
        }
    }

    void damagedFile() {
        QVERIFY_EXCEPTION_THROWN(ui::parseThemeTokens("[]", QStringLiteral("x.json")), base::BadInput);
        QVERIFY_EXCEPTION_THROWN(ui::parseThemeTokens("{\"ui\": {\"window\": 3}}", QStringLiteral("x.json")),
                                 base::BadInput);
    }
};

QTEST_MAIN(ThemeTest)
#include "theme_test.moc"
