from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0001_keys")]

    operations = [
        migrations.CreateModel(
            name='Setting',
            fields=[
                ('name', models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name='name')),
                ('value', models.JSONField(verbose_name='value')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated at')),
            ],
            options={
                'verbose_name': 'setting',
                'verbose_name_plural': 'settings',
                'ordering': ('name',),
            },
        ),
    ]
