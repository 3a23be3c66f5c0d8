// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// vitrine-gui [FILE...] [--view ID] [--render DIR [--size WxH] [--views ID,...]]

#include <QApplication>
#include <QCommandLineParser>
#include <QRegularExpression>
#include <QStandardPaths>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>

#include "app/gui/host_run_controller.h"
#include "app/gui/machine_device_feed.h"
#include "app/gui/render.h"
#include "app/gui/run_choice.h"
#include "ui/models/common/run_controller.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/base/theme.h"

namespace {

bool asksToRender(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (QByteArray(argv[i]).startsWith("--render")) {
            return true;
        }
    }
    return false;
}

struct Options {
    QCommandLineOption help, version;
    QCommandLineOption render{QStringLiteral("render"), QObject::tr("Write a PNG of every view to DIR and exit"),
                              QStringLiteral("DIR")};
    QCommandLineOption size{QStringLiteral("size"), QObject::tr("Window of the PNGs; at least 900x600"),
                            QStringLiteral("WxH"), QStringLiteral("1440x900")};
    QCommandLineOption views{QStringLiteral("views"), QObject::tr("PNGs of these views only, as batching,kv-cache"),
                             QStringLiteral("ID,...")};
    QCommandLineOption view{QStringLiteral("view"), QObject::tr("Begin with this view, as fine-tune"),
                            QStringLiteral("ID")};

    explicit Options(QCommandLineParser& parser) : help(parser.addHelpOption()), version(parser.addVersionOption()) {
        parser.setApplicationDescription(
            QObject::tr("Opens session files (.vitrine), model folders, GGUF files and rows to train on (.jsonl)."));
        parser.addPositionalArgument(QStringLiteral("FILE"),
                                     QObject::tr("Session file, model folder, GGUF file or rows to train on"),
                                     QStringLiteral("[FILE...]"));
        parser.addOptions({render, size, views, view});
    }
};

QStringList wordsOf(int argc, char** argv) {
    QStringList words;
    for (int i = 0; i < argc; ++i) {
        words << QString::fromLocal8Bit(argv[i]);
    }
    return words;
}

/// Whether the command line asks for text alone, which needs no display.
bool asksForText(const QCommandLineParser& parser, const Options& options) {
    return parser.isSet(options.help) || parser.isSet(options.version) || parser.isSet(QStringLiteral("help-all"));
}

/// The words without those that QApplication takes for itself, such as "-platform offscreen".
QStringList withoutQtWords(const QStringList& words) {
    static const QStringList withValue{QStringLiteral("platform"),        QStringLiteral("platformpluginpath"),
                                       QStringLiteral("platformtheme"),   QStringLiteral("plugin"),
                                       QStringLiteral("style"),           QStringLiteral("stylesheet"),
                                       QStringLiteral("qwindowgeometry"), QStringLiteral("qwindowicon"),
                                       QStringLiteral("qwindowtitle"),    QStringLiteral("geometry"),
                                       QStringLiteral("display"),         QStringLiteral("session")};
    static const QStringList alone{QStringLiteral("reverse"), QStringLiteral("widgetcount"), QStringLiteral("nograb"),
                                   QStringLiteral("dograb"), QStringLiteral("sync")};
    QStringList own;
    for (qsizetype i = 0; i < words.size(); ++i) {
        const bool option = words[i].startsWith(QLatin1Char('-'));
        const QString name = words[i].mid(words[i].startsWith(QLatin1String("--")) ? 2 : 1);
        if (option && (alone.contains(name) || withValue.contains(name.section(QLatin1Char('='), 0, 0)))) {
            i += withValue.contains(name) ? 1 : 0;
        } else {
            own << words[i];
        }
    }
    return own;
}

/// Qt ends the program with an abort where it finds no display.
bool hasDisplay(const QStringList& words) {
    return std::ranges::any_of(std::array{"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"},
                               [](const char* name) { return !qgetenv(name).isEmpty(); }) ||
           std::ranges::any_of(words, [](const QString& word) {
               return word.startsWith(QLatin1String("-platform")) || word.startsWith(QLatin1String("--platform")) ||
                      word.startsWith(QLatin1String("-display")) || word.startsWith(QLatin1String("--display"));
           });
}

QString viewNames(const vitrine::ui::MainWindow& window) {
    QStringList names;
    for (const vitrine::ui::View* view : window.views()) {
        names << view->id();
    }
    return names.join(QStringLiteral(", "));
}

/// Opens the view, and when the session has been read once, chooses the runs that it shows.
void beginWith(vitrine::ui::MainWindow& window, const QString& view) {
    window.openView(view);
    QObject::connect(
        window.document(), &vitrine::ui::SessionDocument::opened, &window,
        [&window, view] { vitrine::app::chooseRuns(*window.document(), view); }, Qt::SingleShotConnection);
}

int failUsage(const QString& what) {
    std::fprintf(stderr, "vitrine-gui: error: %s\n", qPrintable(what));
    return 2;
}

int runProgram(int argc, char** argv) {
    QCoreApplication::setApplicationName(QStringLiteral("vitrine"));
    QCoreApplication::setApplicationVersion(QStringLiteral(VITRINE_VERSION));
    QCommandLineParser parser;
    const Options options(parser);
    const QStringList words = wordsOf(argc, argv);
    if (!parser.parse(withoutQtWords(words))) {
        return failUsage(QObject::tr("%1; `vitrine-gui --help` lists the options")
                             .arg(parser.errorText().remove(QRegularExpression(QStringLiteral("\\.$")))));
    }
    if (asksForText(parser, options)) {
        const QCoreApplication app(argc, argv);
        parser.process(app);
        return 0;
    }
    const bool scaled = qEnvironmentVariableIsSet("QT_SCALE_FACTOR");
    if (asksToRender(argc, argv)) {
        qputenv("QT_QPA_PLATFORM", "offscreen"); // pictures need no display
    } else if (!hasDisplay(words)) {
        return failUsage(
            QObject::tr("no display: DISPLAY and WAYLAND_DISPLAY are not set; start it in a desktop session, "
                        "or use --render DIR"));
    }
    QApplication app(argc, argv);
    QApplication::setApplicationDisplayName(QStringLiteral("Vitrine"));
    QApplication::setDesktopFileName(QStringLiteral("vitrine"));

    parser.process(app);

    const QStringList files = parser.positionalArguments();
    if (parser.isSet(options.render)) {
        const QSize window = vitrine::app::windowSize(parser.value(options.size));
        if (window.isEmpty()) {
            return failUsage(
                QObject::tr("--size: %1 is no size from 900x600 to 8192x8192").arg(parser.value(options.size)));
        }
        vitrine::ui::Theme::instance().install();
        const QStringList wanted = parser.value(options.views).split(QLatin1Char(','), Qt::SkipEmptyParts);
        return scaled ? vitrine::app::renderSession(files, parser.value(options.render), window, wanted)
                      : vitrine::app::renderAllRatios(files, parser.value(options.render), parser.value(options.size),
                                                      wanted);
    }

    vitrine::ui::Theme::instance().install();
    vitrine::app::HostRunController runs;
    const QString settings =
        QStandardPaths::writableLocation(QStandardPaths::AppConfigLocation) + QStringLiteral("/vitrine.ini");
    vitrine::app::MachineDeviceFeed devices;
    vitrine::ui::MainWindow window(&runs, settings, nullptr, &devices);
    for (const QString& file : files) {
        window.openFile(file);
    }
    if (const QString view = parser.value(options.view); !view.isEmpty()) {
        if (window.view(view) == nullptr) {
            return failUsage(
                QObject::tr("--view: there is no view \"%1\"; there are: %2").arg(view, viewNames(window)));
        }
        beginWith(window, view);
    }
    window.show();
    return QApplication::exec();
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGXFSZ, SIG_IGN); // a file that reaches its largest size is an error, not our end
    try {
        return runProgram(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vitrine-gui: error: %s\n", error.what());
        return 1;
    }
}
